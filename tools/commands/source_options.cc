#include "commands/source_options.h"

#include <utility>
#include <vector>

#include "commands/options.h"
#include "sources/source_kind.h"

namespace spk {

std::vector<CLI::Option*> add_pack_source_options(CLI::App& sub, PackOptions* options) {
  std::vector<CLI::Option*> added;
  added.push_back(
      sub.add_option("--select", options->select,
                     "Packs: class=NAME, label=N, glob=PATTERN, keys=FILE, share=FRACTION[:SEED]")
          ->type_name("WHAT")
          ->expected(1)
          ->take_all());
  added.push_back(sub.add_option("--join", options->join,
                                 "Further fields, or labels, from this table (CSV, TSV) by key")
                      ->type_name("TABLE"));
  added.push_back(sub.add_option("--join-key", options->join_key,
                                 "The table's column of keys; default the first")
                      ->type_name("COLUMN"));
  added.push_back(sub.add_option("--join-columns", options->join_columns,
                                 "COLUMN[:FIELD[:int64|float32|float64|text]],...; default all")
                      ->type_name("COLUMNS"));
  added.push_back(sub.add_option("--join-missing", options->join_missing,
                                 "Samples without a row: refuse (default), absent, or a number "
                                 "for fields of numbers")
                      ->type_name("refuse|absent|NUMBER"));
  added.push_back(add_choice_option<bool>(sub, "--join-extra", &options->join_ignore_extra,
                                          {{"refuse", false}, {"ignore", true}},
                                          "Rows without a sample; default refuse"));
  return added;
}

std::vector<CLI::Option*> add_source_options(CLI::App& sub, PackOptions* options) {
  std::vector<std::pair<std::string, std::string>> kinds;
  for (const SourceKind& kind : source_kinds()) kinds.emplace_back(kind.name, kind.name);
  std::vector<CLI::Option*> added;
  const auto add = [&added](CLI::Option* option) { added.push_back(option); };
  add(add_choice_option<std::string>(sub, "--source", &options->source_kind, std::move(kinds),
                                     "What SRC is; recognised by itself"));
  add(sub.add_option("--root", options->root,
                     "List: paths are relative to this; default its folder")
          ->type_name("DIR"));
  add(add_choice_option<LabelMode>(sub, "--labels", &options->labels,
                                   {{"auto", LabelMode::kAuto},
                                    {"int", LabelMode::kInt},
                                    {"float", LabelMode::kFloat},
                                    {"words", LabelMode::kWords},
                                    {"none", LabelMode::kNone}},
                                   "What labels are; default auto"));
  add(add_choice_option<bool>(sub, "--accept", &options->accept_any,
                              {{"pictures", false}, {"any", true}},
                              "Folder, list: take pictures (default), or every file as it is"));
  add(sub.add_option("--field", options->side_fields,
                     "Folder, list: a field of the file that PATTERN names, with {key} for the "
                     "sample's key without its suffix; may be given several times")
          ->type_name("NAME=PATTERN")
          ->allow_extra_args(false));
  add(sub.add_flag("--require-fields", options->require_fields,
                   "Reject samples that lack a file of --field"));
  add(sub.add_option("--db", options->database, "LMDB: the named database to take")
          ->type_name("NAME"));
  add(sub.add_option("--images", options->images_name, "HDF5: the dataset, or group, of pictures")
          ->type_name("NAME"));
  add(sub.add_option("--labels-name", options->labels_name, "HDF5: the dataset of labels")
          ->type_name("NAME"));
  add(sub.add_option("--array-layout", options->array_layout,
                     "HDF5: which size is which: nhwc, nchw, nhw ...")
          ->type_name("LAYOUT"));
  add(add_choice_option<ArrayScale>(
      sub, "--array-scale", &options->array_scale,
      {{"unit", ArrayScale::kUnit}, {"byte", ArrayScale::kByte}, {"word", ArrayScale::kWord}},
      "HDF5: numbers that are no bytes go to 1, 255 or 65535"));
  add(add_choice_option<LabelFrom>(
      sub, "--label-from", &options->label_from,
      {{"auto", LabelFrom::kAuto}, {"key-prefix", LabelFrom::kKeyPrefix}},
      "LMDB of pictures: labels are what stands before the first '/' (or last '_') of a key"));
  add(sub.add_option("--features", options->features,
                     "Which parts of a foreign sample become which fields")
          ->type_name("FIELD=NAME,..."));
  add(sub.add_flag("--salvage", options->salvage, "Of a source that is cut, take what is whole"));
  for (CLI::Option* option : add_pack_source_options(sub, options)) add(option);
  return added;
}

}  // namespace spk
