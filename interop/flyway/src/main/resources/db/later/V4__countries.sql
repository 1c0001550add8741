ALTER TABLE singers ADD COLUMN country STRING(2) DEFAULT ('at');

CREATE SEQUENCE numbers OPTIONS (sequence_kind = 'bit_reversed_positive');
