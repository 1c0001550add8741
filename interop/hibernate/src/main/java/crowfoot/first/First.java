package crowfoot.first;

import static crowfoot.Steps.same;

import com.google.cloud.spanner.hibernate.Interleaved;
import com.google.cloud.spanner.hibernate.types.SpannerStringArray;
import jakarta.persistence.Column;
import jakarta.persistence.Embeddable;
import jakarta.persistence.EmbeddedId;
import jakarta.persistence.Entity;
import jakarta.persistence.EnumType;
import jakarta.persistence.Enumerated;
import jakarta.persistence.FetchType;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.Index;
import jakarta.persistence.ManyToMany;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.SequenceGenerator;
import jakarta.persistence.Table;
import jakarta.persistence.Version;
import java.io.Serializable;
import java.math.BigDecimal;
import java.time.LocalDate;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.hibernate.Session;
import org.hibernate.annotations.Type;

/** The first version of a schema: keys from an identity, a sequence and a UUID, an interleaved table, and columns of every usual type. */
public final class First {
  public static final Class<?>[] ENTITIES = {Singer.class, Album.class, Track.class, Venue.class};

  private First() {}

  public static void write(Session session) {
    Singer ann = new Singer();
    ann.name = "Ann";
    ann.mail = "ann@example.com";
    ann.born = LocalDate.of(1990, 1, 2);
    ann.fee = new BigDecimal("12.5");
    ann.score = 0.25;
    ann.active = true;
    ann.picture = new byte[] {0, -1};
    ann.seen = OffsetDateTime.of(2020, 1, 2, 3, 4, 5, 0, ZoneOffset.UTC);
    ann.nicknames = List.of("A", "An");
    session.persist(ann);
    Album album = new Album();
    album.title = "One";
    album.kind = Kind.LIVE;
    album.singer = ann;
    session.persist(album);
    Track track = new Track();
    track.key = new TrackKey(album.id, 1);
    track.title = "Song";
    session.persist(track);
    Venue hall = new Venue();
    hall.name = "Hall";
    hall.residents.add(ann);
    session.persist(hall);
    session.flush();
    session.clear();
    Singer read = session.createQuery("from Singer where name = 'Ann'", Singer.class).getSingleResult();
    same(read.fee.compareTo(ann.fee), 0);
    same(read.born, ann.born);
    same(read.nicknames, ann.nicknames);
    same(read.seen.toInstant(), ann.seen.toInstant());
    same(session.createQuery("select v.name from Venue v join v.residents r where r.active order by v.id", String.class).getResultList(), List.of("Hall"));
    same(session.createQuery("select a.singer.name from Album a where a.kind = LIVE", String.class).getResultList(), List.of("Ann"));
  }
}

enum Kind {STUDIO, LIVE}

@Entity(name = "Singer")
@Table(name = "Singer", indexes = {@Index(name = "singers_by_name", columnList = "name, born desc"), @Index(name = "singers_by_mail", columnList = "mail", unique = true)})
class Singer {
  @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Long id;
  @Column(nullable = false, length = 100) String name;
  @Column(unique = true) String mail;
  LocalDate born;
  BigDecimal fee;
  Double score;
  boolean active;
  byte[] picture;
  OffsetDateTime seen;
  @Type(SpannerStringArray.class) List<String> nicknames;
  @Version long version;
}

@Entity(name = "Album")
@Table(name = "Album")
class Album {
  @Id @GeneratedValue(strategy = GenerationType.UUID) String id;
  String title;
  @Enumerated(EnumType.STRING) Kind kind;
  @ManyToOne(fetch = FetchType.LAZY) Singer singer;
}

@Embeddable
class TrackKey implements Serializable {
  String id;
  long number;

  TrackKey() {}

  TrackKey(String id, long number) {
    this.id = id;
    this.number = number;
  }

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
}

@Entity(name = "Venue")
@Table(name = "Venue")
class Venue {
  // By default Hibernate reads a sequence in blocks, which Spanner's do not have, and takes a table in its place.
  @Id @GeneratedValue(generator = "venue_ids")
  @SequenceGenerator(name = "venue_ids", sequenceName = "venue_ids", allocationSize = 1)
  Long id;
  String name;
  @ManyToMany Set<Singer> residents = new HashSet<>();
}
