"""Static files under hashed names, cached for ever: also the modules that our scripts import from each other."""

from whitenoise.storage import CompressedManifestStaticFilesStorage


class HashedStaticFilesStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # it has no types
    """Rewrites `import … from "./x.js"` too; Django leaves that off unless it is asked for."""

    support_js_module_import_aggregation = True
