"""Django on its official backend with default settings: the contributed applications and one of its own are migrated up and down by
Django's own commands, rows are written and read, and inspectdb reflects the schema.

It reads SPANNER_EMULATOR_HOST and needs the packages of requirements.txt.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import steps

SETTINGS = f'''
SECRET_KEY = "interop"
USE_TZ = True
SITE_ID = 1
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = [
    "django_spanner",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.sites",
    "django.contrib.flatpages",
    "django.contrib.redirects",
    "music",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [{{
    "BACKEND": "django.template.backends.django.DjangoTemplates",
    "OPTIONS": {{"context_processors": [
        "django.template.context_processors.request",
        "django.contrib.auth.context_processors.auth",
        "django.contrib.messages.context_processors.messages",
    ]}},
}}]
DATABASES = {{"default": {{"ENGINE": "django_spanner", "PROJECT": "{steps.PROJECT}", "INSTANCE": "{steps.instance_of("django")}", "NAME": "{steps.DATABASE}"}}}}
'''

FIRST_MODELS = '''
import uuid

from django.db import models


class Genre(models.Model):
    name = models.CharField(max_length=50, unique=True)


class Singer(models.Model):
    name = models.CharField(max_length=100)
    born = models.DateField(null=True)
    rating = models.DecimalField(max_digits=5, decimal_places=2, default=0)
    biography = models.TextField(default="")
    active = models.BooleanField(default=True)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["name", "-born"], name="singers_by_name")]


class Album(models.Model):
    singer = models.ForeignKey(Singer, on_delete=models.CASCADE, related_name="albums")
    title = models.CharField(max_length=100)
    plays = models.PositiveIntegerField(default=0)
    length = models.FloatField(null=True)
    cover = models.BinaryField(null=True)
    code = models.UUIDField(default=uuid.uuid4, unique=True)
    genres = models.ManyToManyField(Genre)

    class Meta:
        unique_together = [("singer", "title")]
'''

SECOND_MODELS = FIRST_MODELS.replace(
    'title = models.CharField(max_length=100)',
    'title = models.CharField(max_length=200)\n    label = models.CharField(max_length=50, default="own")\n    released = models.DateField(null=True, db_index=True)',
).replace(
    '    length = models.FloatField(null=True)\n', '',
).replace(
    'biography = models.TextField(default="")', 'biography = models.TextField(null=True)',
).replace(
    'indexes = [models.Index(fields=["name", "-born"], name="singers_by_name")]', 'indexes = [models.Index(fields=["-born"], name="singers_by_birth")]',
) + '''

class Venue(models.Model):
    name = models.SlugField(primary_key=True)
    owner = models.OneToOneField(Singer, null=True, on_delete=models.SET_NULL)


class Concert(models.Model):
    venue = models.ForeignKey(Venue, on_delete=models.PROTECT)
    singer = models.ForeignKey(Singer, on_delete=models.CASCADE)
    starts = models.DateTimeField()
    lasts = models.DurationField(null=True)
'''

# What this adds is taken back: the backend cannot drop a table or column with a foreign key, since Spanner drops the key's index itself.
THIRD_MODELS = SECOND_MODELS.replace('    born = ', '    country = models.CharField(max_length=2, default="at", db_index=True)\n    born = ') + '''

class Label(models.Model):
    name = models.CharField(max_length=50, unique=True)
    notes = models.TextField(null=True, db_index=False)
'''

FIRST_ROWS = '''
import datetime
from decimal import Decimal

from django.contrib.auth.models import Group, Permission, User
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.backends.db import SessionStore
from django.db import IntegrityError, transaction
from music.models import Album, Genre, Singer

user = User.objects.create_superuser("admin", "admin@example.com", "secret")
user.groups.add(Group.objects.create(name="editors"))
assert user.has_perm("music.add_album") and User.objects.get(username="admin").groups.count() == 1
assert Permission.objects.filter(content_type__app_label="music").count() == 12, Permission.objects.count()
session = SessionStore()
session["seen"] = 3
session.create()
assert SessionStore(session_key=session.session_key)["seen"] == 3

ann = Singer.objects.create(name="Ann", born=datetime.date(1990, 1, 2), rating=Decimal("4.25"))
bob = Singer.objects.create(name="Bob")
rock = Genre.objects.create(name="rock")
album = Album.objects.create(singer=ann, title="One", plays=5, length=1.5, cover=b"\\x00\\xff")
album.genres.add(rock)
ann.refresh_from_db()
assert (ann.rating, ann.born) == (Decimal("4.25"), datetime.date(1990, 1, 2)), vars(ann)
assert [a.title for a in Album.objects.filter(genres__name="rock", singer__name__startswith="A").order_by("title")] == ["One"]
for wrong in (lambda: Genre.objects.create(name="rock"), lambda: Album.objects.create(singer=ann, title="Two", plays=-1)):
    try:
        with transaction.atomic():
            wrong()
    except IntegrityError:
        continue
    raise AssertionError("a constraint did not hold")
'''

SECOND_ROWS = '''
import datetime

from music.models import Album, Concert, Singer, Venue

(album,) = Album.objects.all()
assert (album.title, album.label, album.released) == ("One", "own", None), vars(album)
album.released = datetime.date(2020, 5, 6)
album.save()
ann = Singer.objects.get(name="Ann")
hall = Venue.objects.create(name="hall", owner=ann)
Concert.objects.create(venue=hall, singer=ann, starts=datetime.datetime(2020, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc))
assert Concert.objects.select_related("venue__owner").get().venue.owner.name == "Ann"
ann.delete()
assert not Album.objects.exists() and not Concert.objects.exists() and Venue.objects.get().owner is None
'''


class Project:
    """A Django project in a folder, run by django-admin's commands, each in a process of its own as users run them."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        (self.folder / "settings.py").write_text(SETTINGS)
        (self.folder / "music" / "migrations").mkdir(parents=True)
        for package in ("music", "music/migrations"):
            (self.folder / package / "__init__.py").touch()

    def models(self, text):
        (self.folder / "music" / "models.py").write_text(text)

    def run(self, *command):
        environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "settings", "GOOGLE_CLOUD_PROJECT": steps.PROJECT, "PYTHONPATH": str(self.folder)}
        done = subprocess.run([sys.executable, "-m", "django", *command], env=environment, cwd=self.folder, capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(command)[:60]}: {done.stdout[-2000:]}{done.stderr}")
        return done.stdout


def contains(text, *parts):
    for part in parts:
        if part not in text:
            raise AssertionError(f"{part!r} is not in {text}")


def main():
    steps.create_database("django")
    with tempfile.TemporaryDirectory() as folder:
        project = Project(folder)

        def migrate():
            project.models(FIRST_MODELS)
            project.run("makemigrations", "music")
            project.run("migrate")
            project.run("migrate", "--check")

        def migrate_further():
            project.models(SECOND_MODELS)
            project.run("makemigrations", "music", "-n", "second")
            project.run("migrate")

        def reflect():
            contains(project.run("inspectdb"), "class AuthUser(", "class MusicAlbum(", "singer = models.ForeignKey('MusicSinger'",
                     "unique_together = (('singer', 'title'),)", "born = models.DateField(blank=True, null=True)")
            contains(project.run("inspectdb", "music_concert"), "starts = models.DateTimeField()")

        def back():
            project.models(THIRD_MODELS)
            project.run("makemigrations", "music", "-n", "third")
            project.run("migrate")
            contains(project.run("inspectdb"), "class MusicLabel(", "country = models.CharField()")
            project.run("migrate", "music", "0002")
            project.run("migrate", "sessions", "zero")
            tables = project.run("inspectdb")
            for gone in ("MusicLabel", "country", "DjangoSession"):
                if gone in tables:
                    raise AssertionError(f"{gone} is still in {tables}")

        steps.run("django", {
            "migrate": migrate,
            "rows": lambda: project.run("shell", "-c", FIRST_ROWS),
            "migrate further": migrate_further,
            "rows of the second migration": lambda: project.run("shell", "-c", SECOND_ROWS),
            "inspectdb": reflect,
            "migrate back": back,
        })


main()
