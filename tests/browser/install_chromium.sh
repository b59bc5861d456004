#!/bin/sh
# Installs Debian's Chromium where none is found: as root, or through sudo.
set -eu
if [ -n "${CONVLINT_CHROMIUM:-}" ]; then
  if command -v "$CONVLINT_CHROMIUM" >/dev/null; then exit 0; fi # its path may hold spaces
  echo "CONVLINT_CHROMIUM=$CONVLINT_CHROMIUM is no program that can be run" >&2
  exit 1
fi
for name in chromium chromium-browser google-chrome; do
  if command -v "$name" >/dev/null; then exit 0; fi
done
sudo=
packages=chromium
# Debian's sandbox is a package of its own; root runs without one.
[ "$(id -u)" -eq 0 ] || { sudo=sudo; packages="chromium chromium-sandbox"; }
if ! command -v apt-get >/dev/null || { [ -n "$sudo" ] && ! command -v sudo >/dev/null; }; then
  echo "install Chromium by hand (Debian: apt-get install chromium, as root), or set CONVLINT_CHROMIUM to one" >&2
  exit 1
fi
# Another program may hold the package lists, and a mirror may be out for a moment.
apt() { $sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@"; }
for pause in 5 20 60 0; do
  if apt update && apt install --yes --no-install-recommends $packages >/dev/null; then exit 0; fi
  sleep "$pause"
done
echo "Chromium could not be installed; what apt-get says of it stands above" >&2
exit 1
