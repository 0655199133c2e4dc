/* stripepack: pictures to tensors. Decodes JPEG, PNG and WebP to 8-bit RGB in the caller's memory
 * (a slot of a batch, say), cropped, resized and turned on the way. A library of its own,
 * libstripepack-image.so, so that readers of packs need none of the picture libraries.
 *
 * Results, memory and growth are as stripepack.h says; this header takes spk_error and the codes
 * from it, and nothing else: the two libraries do not need each other.
 *
 * Randomness. What happens to a picture is a function of the operation's options, its seed and
 * epoch, the number of the sample, and the picture: not of threads, ranks or the order of calls.
 * docs/IMAGES.md specifies it to the bit.
 *
 * Threads. spk_image_info, spk_image_plan_crop and spk_image_decode may be called by any number of
 * threads at once, and several may share a pool.
 */
#ifndef STRIPEPACK_IMAGE_H_
#define STRIPEPACK_IMAGE_H_

#include "stripepack/stripepack.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SPK_IMAGE_ABI_VERSION 1u
/* The library's: a program may run with any library whose number is not smaller. */
SPK_API uint32_t spk_image_abi_version(void) SPK_NOEXCEPT;

/* ---- What a picture is ------------------------------------------------------------------------
 */

enum { SPK_IMAGE_JPEG = 1, SPK_IMAGE_PNG = 2, SPK_IMAGE_WEBP = 3 };

/* 1 where this build decodes the format, otherwise 0. JPEG is always there. */
SPK_API int32_t spk_image_decodes(uint32_t format) SPK_NOEXCEPT;

typedef struct spk_image_header {
  uint32_t struct_size; /* sizeof(spk_image_header) */
  uint32_t format;      /* SPK_IMAGE_JPEG, ... */
  uint32_t width;       /* as stored: a turn by EXIF is not in it */
  uint32_t height;
  uint32_t channels; /* as stored: grey 1, grey and alpha 2, colour or palette 3, RGBA or CMYK 4 */
  uint32_t depth;    /* bits a channel, of a palette those of its entries */
  uint32_t orientation; /* of EXIF: 1 to 8; 1 where there is none */
  uint32_t reserved;
} spk_image_header;

/* Looks at the headers only. SPK_NOT_THIS_FORMAT: no picture; SPK_UNSUPPORTED: one of a kind that
 * this library does not decode; SPK_DAMAGED: the headers are cut or contradict themselves. */
SPK_API int32_t spk_image_info(const void* data, uint64_t size, spk_image_header* out,
                               spk_error* err) SPK_NOEXCEPT;

/* ---- What is to be made of it -----------------------------------------------------------------
 */

enum {
  SPK_IMAGE_FULL = 0,               /* all of it, in its own size */
  SPK_IMAGE_RESIZE = 1,             /* all of it, to width x height */
  SPK_IMAGE_RESIZE_SHORT = 2,       /* the shorter side to short_side, the other in proportion */
  SPK_IMAGE_CENTER_CROP = 3,        /* RESIZE_SHORT, of which the middle width x height */
  SPK_IMAGE_RANDOM_RESIZED_CROP = 4 /* a part chosen at random, resized to width x height */
};
enum {
  SPK_IMAGE_HWC = 0, /* row by row, R G B of a pixel side by side */
  SPK_IMAGE_CHW = 1  /* a plane of R, one of G, one of B */
};

typedef struct spk_image_ops {
  uint32_t struct_size; /* sizeof(spk_image_ops) */
  uint32_t kind;        /* SPK_IMAGE_FULL, ... */
  uint32_t layout;      /* SPK_IMAGE_HWC or SPK_IMAGE_CHW */
  uint32_t width;       /* 1 to 65535 where the kind has them */
  uint32_t height;
  uint32_t short_side;       /* 1 to 65535; CENTER_CROP: at least width and height */
  uint32_t exif_orientation; /* not 0: turned upright before all else */
  uint32_t reserved;
  double flip_probability; /* of mirroring left and right, last of all; 0 to 1, with any kind */
  double scale_min;        /* RANDOM_RESIZED_CROP: part of the area, within 0 < min <= max <= 1; */
  double scale_max;        /* both 0: 0.08 to 1 */
  double ratio_min;        /* width / height of the part, 1/16 <= min <= max <= 16; */
  double ratio_max;        /* both 0: 3/4 to 4/3 */
  uint64_t max_pixels;     /* pictures of more are refused; 0: 178,956,970 */
  uint64_t seed;
  uint64_t epoch;
} spk_image_ops;

typedef struct spk_image_crop {
  uint32_t struct_size; /* sizeof(spk_image_crop) */
  uint32_t flipped;     /* 1: mirrored left and right afterwards */
  uint32_t width;       /* of the output */
  uint32_t height;
  /* The part of the picture (turned upright where that was asked for) that fills the output.
   * Whole numbers but with CENTER_CROP. */
  double left;
  double top;
  double right;
  double bottom;
} spk_image_crop;

/* What spk_image_decode does with a picture of this size (after the turn by EXIF) as sample SAMPLE:
 * to make room for it, or to do the same to a mask or to boxes. */
SPK_API int32_t spk_image_plan_crop(uint32_t width, uint32_t height, const spk_image_ops* ops,
                                    uint64_t sample, spk_image_crop* out,
                                    spk_error* err) SPK_NOEXCEPT;

/* ---- Decoding ---------------------------------------------------------------------------------
 */

typedef struct spk_image_item {
  const void* data;  /* in: the encoded picture */
  uint64_t size;     /* in */
  void* out;         /* in: where the pixels go */
  uint64_t capacity; /* in: bytes in OUT; 3 x width x height are used */
  uint64_t sample;   /* in: number of the sample: chooses what is random */
  uint32_t width;    /* out: of the pixels; set as well where CAPACITY is too small */
  uint32_t height;
  int32_t code; /* out: SPK_OK or why there are no pixels; OUT may hold some then */
  uint32_t reserved;
} spk_image_item;

/* Decodes one picture in the calling thread. SPK_INVALID_ARGUMENT: OUT is too small, or an option
 * is wrong; SPK_NOT_THIS_FORMAT; SPK_UNSUPPORTED: another kind of picture, or over max_pixels;
 * SPK_DAMAGED: what had to be decoded is cut or corrupt; SPK_NO_MEMORY. */
SPK_API int32_t spk_image_decode(spk_image_item* item, const spk_image_ops* ops,
                                 spk_error* err) SPK_NOEXCEPT;

typedef struct spk_image_pool spk_image_pool;

/* Threads for decoding, the calling one among them: THREADS, or with 0 as many as the CPUs that the
 * process may run on (sched_getaffinity). They are started by the first decode that can use them,
 * in each process anew, so that a pool may be made before fork(). *OUT must be closed. */
SPK_API int32_t spk_image_pool_open(uint32_t threads, spk_image_pool** out,
                                    spk_error* err) SPK_NOEXCEPT;
SPK_API uint32_t spk_image_pool_threads(const spk_image_pool* pool) SPK_NOEXCEPT;
/* NULL is allowed. No call may be running on the pool. */
SPK_API void spk_image_pool_close(spk_image_pool* pool) SPK_NOEXCEPT;

/* Decodes COUNT pictures. POOL NULL: in the calling thread alone. SPK_PARTIAL: some failed; each
 * item has its code, and err tells of the first of them. */
SPK_API int32_t spk_image_decode_many(spk_image_pool* pool, spk_image_item* items, uint64_t count,
                                      const spk_image_ops* ops, spk_error* err) SPK_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* STRIPEPACK_IMAGE_H_ */
