"""What loaders of other packages are made of: files found, tables and folders read."""

from shoal.datasets._files import DATA_DIR as DATA_DIR
from shoal.datasets._files import find_file as find_file
from shoal.datasets._files import read_class_folders as read_class_folders
from shoal.datasets._files import read_table as read_table
