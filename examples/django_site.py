"""Django's tasks on Penstock: an order and its task are one commit, and a worker does the rest."""

from tempfile import TemporaryDirectory
from typing import Any

import django
from django.conf import settings
from django.core.management import call_command
from django.db import connection, transaction

FOLDER = TemporaryDirectory()

settings.configure(
    DATABASES={
        "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": f"{FOLDER.name}/site.db"}
    },
    INSTALLED_APPS=["penstock.contrib.django"],
    TASKS={"default": {"BACKEND": "penstock.contrib.django.Backend"}},
    USE_TZ=True,
)
django.setup()

if django.VERSION >= (6,):
    from django.tasks import task
else:  # the same interface, for the versions before
    from django_tasks import task


@task
def ship(order: str) -> str:
    return f"{order} shipped"


def main() -> None:
    call_command("penstock_worker", drain=True)  # makes the queue, before Django's own tables
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE orders (number varchar(10))")

    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("INSERT INTO orders VALUES ('A-1')")
        shipped: Any = ship.enqueue("A-1")

    call_command("penstock_worker", drain=True)
    shipped.refresh()
    assert shipped.return_value == "A-1 shipped"
    print(shipped.status, shipped.return_value)


if __name__ == "__main__":
    with FOLDER:
        main()
        connection.close()
