/* The reading half of a trainer in C: each rank goes through its own equal part of a pack.
 *
 *   train PACK [RANK WORLD]
 *
 * The model is a stand-in (what each class weighs in bytes): step() is where a decoder and a model
 * go. cc train.c -o train $(pkg-config --cflags --libs stripepack); where stripepack lies outside
 * the system's folders, add -Wl,-rpath,$(pkg-config --variable=libdir stripepack). */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stripepack/stripepack.h>

typedef struct model {
  uint64_t pictures;
  uint64_t bytes;
} model;

/* BLOB is the picture as it was packed, valid until the next sample. */
static void step(model* classes, int64_t label, const void* blob, uint64_t size) {
  (void)blob;
  ++classes[label].pictures;
  classes[label].bytes += size;
}

static int fail(const spk_error* error) {
  fprintf(stderr, "train: %s\n", error->message);
  return 1;
}

/* One pass over this rank's part. A damaged sample is told and costs no other one. */
static int epoch(const spk_pack* pack, uint64_t rank, uint64_t world, const int64_t* labels,
                 uint64_t first, int64_t class_count, model* classes) {
  spk_error error = {.struct_size = sizeof error};
  uint32_t image = 0;
  if (spk_field_find(pack, "image", &image, &error) != SPK_OK) return fail(&error);
  spk_iter* iter = NULL;
  if (spk_iter_open(pack, rank, world, &iter, &error) != SPK_OK) return fail(&error);
  uint64_t sample = 0;
  int32_t code = SPK_OK;
  while ((code = spk_iter_next(iter, &sample, &error)) == SPK_OK) {
    const int64_t label = labels[sample - first];
    const void* blob = NULL;
    uint64_t size = 0;
    if (spk_iter_blob(iter, image, &blob, &size, &error) != SPK_OK) {
      fail(&error);
    } else if (label >= 0 && label < class_count) {
      step(classes, label, blob, size);
    }
  }
  spk_iter_close(iter);
  return code == SPK_END ? 0 : fail(&error);
}

/* RANK or WORLD: a whole number and nothing else, or the program ends. */
static uint64_t number(const char* text) {
  char* end = NULL;
  errno = 0;
  const unsigned long long value = strtoull(text, &end, 10);
  if (*text < '0' || *text > '9' || *end != '\0' || errno != 0) {
    fprintf(stderr, "train: '%s' is not a whole number\n", text);
    exit(2);
  }
  return value;
}

int main(int argc, char** argv) {
  const int help = argc == 2 && strcmp(argv[1], "--help") == 0;
  if (help || (argc != 2 && argc != 4)) {
    fprintf(help ? stdout : stderr, "usage: train PACK [RANK WORLD]\n");
    return help ? 0 : 2;
  }
  const uint64_t rank = argc == 4 ? number(argv[2]) : 0;
  const uint64_t world = argc == 4 ? number(argv[3]) : 1;
  spk_error error = {.struct_size = sizeof error};
  spk_pack* pack = NULL;
  if (spk_open(argv[1], NULL, &pack, &error) != SPK_OK) return fail(&error);

  /* Labels are numbers in the index: the whole part's at once, without touching the pictures. */
  spk_info info = {.struct_size = sizeof info};
  uint64_t first = 0, end = 0;
  uint32_t label = 0;
  int result = 1;
  int64_t* labels = NULL;
  model* classes = NULL;
  if (spk_get_info(pack, &info, &error) != SPK_OK ||
      spk_part(pack, rank, world, &first, &end, &error) != SPK_OK ||
      spk_field_find(pack, "label", &label, &error) != SPK_OK) {
    fail(&error);
  } else if ((labels = calloc(end - first + 1, sizeof *labels)) == NULL ||
             (classes = calloc(info.class_count + 1, sizeof *classes)) == NULL) {
    fprintf(stderr, "train: out of memory\n");
  } else if (spk_get_ints(pack, label, first, end - first, labels, NULL, &error) != SPK_OK) {
    fail(&error);
  } else {
    result = epoch(pack, rank, world, labels, first, info.class_count, classes);
  }

  for (uint32_t i = 0; result == 0 && i < info.class_count; ++i) {
    const char* name = NULL;
    if (spk_class_name(pack, i, &name, NULL, &error) != SPK_OK) result = fail(&error);
    if (result == 0 && classes[i].pictures != 0) {
      printf("rank %" PRIu64 ": %-12s %6" PRIu64 " pictures of %" PRIu64 " bytes\n", rank, name,
             classes[i].pictures, classes[i].bytes / classes[i].pictures);
    }
  }
  free(classes);
  free(labels);
  spk_close(pack);
  return result;
}
