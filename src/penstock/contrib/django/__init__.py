"""Django's tasks on Penstock.

`TASKS = {"default": {"BACKEND": "penstock.contrib.django.Backend"}}`.

The interface is `django.tasks` (Django 6), or the package django-tasks, which has the same for
Django 4.2 and 5. With `penstock.contrib.django` in INSTALLED_APPS, `manage.py penstock_worker` runs
the tasks.
"""

from penstock.contrib.django.backend import Backend

__all__ = ["Backend"]
