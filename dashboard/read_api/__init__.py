"""/api/v1: what programs may read of sources, engines, series and sizes. Writes nothing, never imports the engine."""
