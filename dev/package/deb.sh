#!/bin/sh
# Makes the Debian package of a program that is already built, with cargo-deb.
#
#   deb.sh ARCH PROGRAM FOLDER     ARCH is amd64 or arm64; FOLDER receives vestibule_VERSION_ARCH.deb
set -eu
CARGO_DEB=3.6.2
case "$1" in
  amd64) target=x86_64-unknown-linux-gnu ;;
  arm64) target=aarch64-unknown-linux-gnu ;;
  *) sed -n '2,5s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac
program=$(realpath "$2")
folder=$(realpath "$3")
cd "$(dirname "$0")/../.."
target_dir=$(realpath -m "${CARGO_TARGET_DIR:-target}")
tools=$target_dir/tools/cargo-deb-$CARGO_DEB
[ -x "$tools/bin/cargo-deb" ] || CARGO_TARGET_DIR=$tools/target cargo install --quiet --locked --version "$CARGO_DEB" --root "$tools" cargo-deb
made=$target_dir/$target/release
mkdir -p "$made"
[ "$program" -ef "$made/vestibule" ] || install -m 0755 "$program" "$made/vestibule"
"$tools/bin/cargo-deb" deb --quiet --package vestibule --no-build --no-strip --target "$target" --output "$folder/"
