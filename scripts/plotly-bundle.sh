#!/bin/sh
# Builds static/vendor/plotly-tierscope-VERSION.min.js: plotly.js with only the traces that the pages draw.
# Run by hand when plotly.js is updated; needs Node and npm. Usage: sh scripts/plotly-bundle.sh 4.1.1
set -eu
version=${1:?which version of plotly.js?}
target=$(cd "$(dirname "$0")/.." && pwd)/static/vendor/plotly-tierscope-$version.min.js
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --ignore-scripts --no-audit --no-fund "plotly.js@$version" stream-browserify@3.0.0 esbuild@0.28.1 \
  esbuild-plugin-environment@0.5.0 esbuild-plugin-glsl@1.4.2 esbuild-plugin-inline-css@0.0.1
cat > entry.cjs <<'END'
const Plotly = require("plotly.js/lib/core"); // scatter is always in it
Plotly.register([require("plotly.js/lib/bar"), require("plotly.js/lib/sankey")]);
module.exports = Plotly;
END
# The options of plotly.js's own esbuild-config.js.
cat > build.mjs <<'END'
import { build } from "esbuild";
import { environmentPlugin } from "esbuild-plugin-environment";
import { glsl } from "esbuild-plugin-glsl";
import InlineCSSPlugin from "esbuild-plugin-inline-css";
const [version, outfile] = process.argv.slice(2);
await build({
  entryPoints: ["entry.cjs"], format: "iife", globalName: "Plotly", bundle: true, minify: true, target: "es2016", outfile,
  plugins: [InlineCSSPlugin(), glsl({ minify: true }), environmentPlugin({ NODE_DEBUG: false })],
  alias: { regl: "@plotly/regl", stream: "stream-browserify" },
  define: { global: "window", "define.amd": "false" }, legalComments: "none",
  banner: { js: `/*! plotly.js v${version} (scatter, bar, sankey). Copyright 2012-2026, Plotly, Inc. MIT licence. */` },
});
END
node build.mjs "$version" "$target"
cp node_modules/plotly.js/LICENSE "$(dirname "$target")/plotly-LICENSE.txt"
ls -l "$target"
