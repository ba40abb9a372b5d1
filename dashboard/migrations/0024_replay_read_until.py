"""A pause inside a trace is booked in parts: how far is kept beside the number of requests.

What an earlier version has begun was cut in other portions; it cannot be gone on with.
"""

from typing import Any

from django.db import migrations, models


def end_begun(apps: Any, schema_editor: Any) -> None:
    begun = apps.get_model("dashboard", "Replay").objects.filter(num_done__gt=0).exclude(state__in=("done", "failed"))
    begun.update(state="failed", error="It was begun by an earlier version of Tierscope; begin a new one.", worker="")


class Migration(migrations.Migration):
    dependencies = [
        ("dashboard", "0023_typed_costs"),
    ]

    operations = [
        migrations.AddField(
            model_name="replay",
            name="read_until",
            field=models.BigIntegerField(
                default=0, help_text="Unix seconds: readings of the tiers before are in, too."
            ),
        ),
        migrations.RunPython(end_begun, migrations.RunPython.noop),
    ]
