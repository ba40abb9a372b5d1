"""Large removals are gone on with by the worker: since when a source is being removed is written down."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("dashboard", "0028_chunks"),
    ]

    operations = [
        migrations.AddField(
            model_name="source",
            name="removed_at",
            field=models.DateTimeField(editable=False, help_text="Since when it is being removed.", null=True),
        ),
    ]
