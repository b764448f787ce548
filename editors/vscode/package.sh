#!/usr/bin/env bash
# Packages the extension with castor inside, for one platform.
# Usage: package.sh TARGET BINARY OUT.vsix, for example package.sh linux-x64 target/release/castor castor.vsix
set -euo pipefail
[ $# = 3 ] || { sed -n 2,3p "$0"; exit 2; }
target=$1
binary=$(realpath "$2")
out=$(realpath -m "$3")
cd "$(dirname "$0")"

rm -rf bin
mkdir bin
trap 'rm -rf bin' EXIT
install -m 755 "$binary" bin/castor
# Editors complete castor's settings by the schema of the castor that is inside.
cp ../../schema/settings.json media/settings.schema.json
cp ../../LICENSE LICENSE
node build.mjs
node_modules/.bin/vsce package --target "$target" --no-dependencies --allow-missing-repository --skip-license --out "$out"
