"""Pictures and their classes, one by one."""
import contextlib
import io

import torch.utils.data

from ..dataset import as_dataset


def default_loader(file):
    """A picture of Pillow, in RGB."""
    from PIL import Image  # needed by nothing else here
    with Image.open(file) as picture:
        return picture.convert("RGB")


@contextlib.contextmanager
def _naming(name):
    """Adds a sample's name to what its loader or transform raises."""
    try:
        yield
    except Exception as error:
        if hasattr(error, "add_note"):  # from Python 3.11 on
            error.add_note(f"stripepack: this was sample {name!r}")
        raise


class ImageFolder(torch.utils.data.Dataset):
    """What torchvision.datasets.ImageFolder is for a folder, for a pack.

    path: the pack's directory, or a stripepack.Dataset. transform, target_transform: called with
    each picture and each class number. loader: makes a picture of a file-like object, whose .name is
    the sample's; torchvision's get a path. field: which holds the pictures; None: the first of bytes.
    cache: as of stripepack.Dataset.

    .classes: names; .class_to_idx: their numbers; .targets: a list with the class number of every
    sample; .samples, .imgs: a list of (name in the source, class number), made when asked for.
    dataset[i] is (picture, class number). Raises stripepack.Error, "damaged" by the sample's name.
    May be used by forked and spawned workers.
    """

    def __init__(self, path, transform=None, target_transform=None, loader=None, field=None,
                 cache=None):
        self.dataset = as_dataset(path, cache)
        self.root = self.dataset.path
        self.transform = transform
        self.target_transform = target_transform
        self.loader = loader or default_loader
        self.field = self.dataset._blob_field(field).name
        self.classes = list(self.dataset.classes)
        self.class_to_idx = {name: number for number, name in enumerate(self.classes)}
        self._targets = self._samples = None

    @property
    def targets(self):
        if self._targets is None:
            self._targets = self.dataset.labels.tolist()
        return self._targets

    @property
    def samples(self):
        if self._samples is None:
            self._samples = list(zip(self.dataset.keys(), self.targets))
        return self._samples

    @property
    def imgs(self):
        return self.samples

    def __len__(self):
        return len(self.dataset)

    def _picture(self, index, blob):
        file = io.BytesIO(blob)
        file.name = self.dataset.key(index)
        with _naming(file.name):
            picture = self.loader(file)
            if self.transform is not None:
                picture = self.transform(picture)
        target = int(self.dataset.labels[index])
        if self.target_transform is not None:
            target = self.target_transform(target)
        return picture, target

    def __getitem__(self, index):
        return self._picture(index, self.dataset.read(index, self.field))

    def __getitems__(self, indices):
        """Of a batch, read in one call; DataLoader asks so where it knows how."""
        return list(map(self._picture, indices, self.dataset.read_many(indices, self.field)))

    def __getstate__(self):
        # Workers read the lists again where they need them.
        return dict(self.__dict__, _targets=None, _samples=None)

    def __repr__(self):
        return f"<stripepack.torch.ImageFolder {self.root!r}: {len(self)} samples, " \
               f"{len(self.classes)} classes>"
