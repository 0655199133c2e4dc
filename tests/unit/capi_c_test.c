/* The public header in C11, and a walk through a pack with it. capi_test.cc calls it. */
#include <stddef.h>

#include "stripepack/stripepack.h"

_Static_assert(sizeof(spk_error) == 256, "size of spk_error");
_Static_assert(sizeof(spk_open_options) == 24, "size of spk_open_options");
_Static_assert(sizeof(spk_info) == 144, "size of spk_info");
_Static_assert(sizeof(spk_field) == 24, "size of spk_field");
_Static_assert(sizeof(spk_extent) == 32, "size of spk_extent");
_Static_assert(sizeof(spk_read_item) == 40, "size of spk_read_item");
_Static_assert(sizeof(spk_damage) == 80, "size of spk_damage");

/* Bytes of all blobs of the field "image", read as four ranks would; negative: a code. */
int64_t spk_test_read_in_c(const char* path);

int64_t spk_test_read_in_c(const char* path) {
  spk_error err = {.struct_size = sizeof err};
  spk_pack* pack = NULL;
  uint32_t image = 0;
  int64_t bytes = 0;
  int32_t code = spk_open(path, NULL, &pack, &err);
  if (code == SPK_OK) code = spk_field_find(pack, "image", &image, &err);
  for (uint64_t rank = 0; rank < 4 && code == SPK_OK; ++rank) {
    spk_iter* iter = NULL;
    uint64_t sample = 0;
    const void* data = NULL;
    uint64_t size = 0;
    code = spk_iter_open(pack, rank, 4, &iter, &err);
    while (code == SPK_OK && (code = spk_iter_next(iter, &sample, &err)) == SPK_OK) {
      code = spk_iter_blob(iter, image, &data, &size, &err);
      if (code == SPK_OK) bytes += (int64_t)size;
    }
    if (code == SPK_END) code = SPK_OK;
    spk_iter_close(iter);
  }
  spk_close(pack);
  return code == SPK_OK ? bytes : -(int64_t)code;
}
