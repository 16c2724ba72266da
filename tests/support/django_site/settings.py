"""Settings of the site: `SITE_DATABASE` and `SITE_OPTIONS` are JSON objects, as Django has them."""

import json
import os
from importlib.util import find_spec

SECRET_KEY = "of no use"
USE_TZ = True
DATABASES = {"default": json.loads(os.environ["SITE_DATABASE"])}
INTERFACE = "django.tasks" if find_spec("django.tasks") else "django_tasks"
INSTALLED_APPS = [
    "tests.support.django_site",
    "penstock.contrib.django",
    *([] if INTERFACE == "django.tasks" else ["django_tasks"]),
]
TASKS = {
    "default": {
        "BACKEND": "penstock.contrib.django.Backend",
        "QUEUES": ["default", "mail"],
        "OPTIONS": json.loads(os.environ.get("SITE_OPTIONS", "{}")),
    }
}
