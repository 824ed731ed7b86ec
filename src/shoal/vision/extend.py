"""What trainings of other packages are made of: rows, steps, parts, losses, devices.

A package adds a way to pretrain by an entry point of the group ``shoal.pretraining``
that names a function with the parameters of :func:`shoal.vision.simclr`.
"""

from shoal.vision._backbone import read_weights as read_weights
from shoal.vision._devices import gather_rows as gather_rows
from shoal.vision._devices import mean_over_processes as mean_over_processes
from shoal.vision._devices import place_module as place_module
from shoal.vision._encode import nearest as nearest
from shoal.vision._images import ImageInput as ImageInput
from shoal.vision._images import check_image_rows as check_image_rows
from shoal.vision._images import check_images_domains as check_images_domains
from shoal.vision._images import digest_rows as digest_rows
from shoal.vision._loop import Step as Step
from shoal.vision._loop import cosine as cosine
from shoal.vision._rows import draw_column as draw_column
from shoal.vision._rows import outputs as outputs
from shoal.vision._simclr import Pretext as Pretext
from shoal.vision._simclr import Pretrained as Pretrained
from shoal.vision._steps import info_nce as info_nce
from shoal.vision._steps import neighbour_consistency as neighbour_consistency
from shoal.vision._steps import network_part as network_part
from shoal.vision._steps import random_views as random_views
from shoal.vision._steps import self_label_loss as self_label_loss
