#!/bin/sh
# Fashion-MNIST (MIT licence) from the Debian package dataset-fashion-mnist.
# load_fashion_mnist() looks where the package puts its files, so the first line is
# enough on Debian; the rest links them into SHOAL_DATA_DIR, where every loader looks.
set -eu
apt-get install -y dataset-fashion-mnist
if [ -n "${SHOAL_DATA_DIR:-}" ]; then
    mkdir -p "$SHOAL_DATA_DIR/fashion-mnist"
    dpkg -L dataset-fashion-mnist | grep -- '-ubyte\.gz$' |
        xargs -I '{}' ln -sf '{}' "$SHOAL_DATA_DIR/fashion-mnist/"
fi
