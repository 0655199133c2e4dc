// Pictures of which each pixel's value is a name, not a colour: segmentation masks.
#pragma once

#include "image/transform.h"
#include "picture/plan.h"

namespace spk::image {

// What a geometry asks of a decoder: the kind and the sizes.
void set_places(const PictureGeometry& geometry, picture::Ops* ops);

// The PNG in DATA as GEOMETRY says: each pixel the nearest of those it had, in the same kind of PNG
// (palette, depth), borders 0. A reject where it is no PNG, or not of the size that the picture is
// stored in. Only `same`, `bytes` and `reject` are set.
Result<Transformed> transform_mask(ByteSpan data, const PictureGeometry& geometry);

}  // namespace spk::image
