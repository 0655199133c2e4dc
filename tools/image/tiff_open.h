// A TIFF in libtiff's hands, read through a view. Nothing is printed.
#pragma once

#if SPK_HAVE_TIFF

#include <tiffio.h>

#include "base/result.h"
#include "image/byte_view.h"

namespace spk::image {

struct TiffInput {
  ByteView* view;
  uint64_t position = 0;
  Status io;               // where the view failed
  char message[200] = {};  // libtiff's first complaint, which is nearest to the cause
};

// Null where it cannot be opened. IN must outlive it; TIFFClose() ends it.
TIFF* open_tiff(TiffInput& in);

}  // namespace spk::image

#endif
