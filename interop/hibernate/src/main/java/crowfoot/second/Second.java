package crowfoot.second;

import static crowfoot.Steps.same;

import com.google.cloud.spanner.hibernate.Interleaved;
import jakarta.persistence.Column;
import jakarta.persistence.Embeddable;
import jakarta.persistence.EmbeddedId;
import jakarta.persistence.Entity;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.Index;
import jakarta.persistence.ManyToMany;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.SequenceGenerator;
import jakarta.persistence.Table;
import java.io.Serializable;
import java.time.LocalDate;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.HashSet;
import java.util.Objects;
import java.util.Set;
import org.hibernate.Session;

/** The second version of the schema: columns, a foreign key, an index and a table more, and columns less, which stay in the database. */
public final class Second {
  public static final Class<?>[] ENTITIES = {Singer.class, Album.class, Track.class, Venue.class, Concert.class};

  private Second() {}

  public static void write(Session session) {
    Singer ann = session.createQuery("from Singer where name = 'Ann'", Singer.class).getSingleResult();
    ann.biography = "long";
    Album album = session.createQuery("from Album", Album.class).getSingleResult();
    album.label = "own";
    album.producer = ann;
    Concert concert = new Concert();
    concert.singer = ann;
    concert.starts = OffsetDateTime.of(2021, 1, 2, 3, 4, 5, 0, ZoneOffset.UTC);
    session.persist(concert);
    session.flush();
    session.clear();
    same(session.createQuery("select c.singer.biography from Concert c", String.class).getSingleResult(), "long");
  }
}

@Entity(name = "Singer")
@Table(name = "Singer", indexes = {@Index(name = "singers_by_name", columnList = "name, born desc"), @Index(name = "singers_by_mail", columnList = "mail", unique = true)})
class Singer {
  @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Long id;
  @Column(nullable = false, length = 100) String name;
  String mail;
  LocalDate born;
  LocalDate died;
  @Column(length = 3000) String biography;
}

@Entity(name = "Album")
@Table(name = "Album", indexes = @Index(name = "albums_by_label", columnList = "label"))
class Album {
  @Id @GeneratedValue(strategy = GenerationType.UUID) String id;
  String title;
  String label;
  @ManyToOne Singer producer;
}

@Entity(name = "Concert")
@Table(name = "Concert")
class Concert {
  @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Long id;
  @ManyToOne(optional = false) Singer singer;
  OffsetDateTime starts;
}

@Embeddable
class TrackKey implements Serializable {
  String id;
  long number;

  @Override public boolean equals(Object o) {
    return o instanceof TrackKey k && k.id.equals(id) && k.number == number;
  }

  @Override public int hashCode() {
    return Objects.hash(id, number);
  }
}

@Entity(name = "Track")
@Table(name = "Track")
@Interleaved(parentEntity = Album.class, cascadeDelete = true)
class Track {
  @EmbeddedId TrackKey key;
  String title;
  Long seconds;
}

@Entity(name = "Venue")
@Table(name = "Venue")
class Venue {
  @Id @GeneratedValue(generator = "venue_ids")
  @SequenceGenerator(name = "venue_ids", sequenceName = "venue_ids", allocationSize = 1)
  Long id;
  String name;
  @ManyToMany Set<Singer> residents = new HashSet<>();
}
