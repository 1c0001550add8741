INSERT INTO singers (id, name) VALUES (1, 'Ann'), (2, 'Bob');

INSERT INTO albums (id, album, title) VALUES (1, 1, 'One; two');

UPDATE singers SET name = 'Bo' WHERE id = 2;
