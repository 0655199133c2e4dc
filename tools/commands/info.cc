#include "commands/info.h"

#include <utility>

#include "base/text.h"
#include "commands/options.h"
#include "commands/pack_set.h"
#include "commands/run_record.h"
#include "commands/sample_facts.h"
#include "container/pack_size.h"
#include "ui/signals.h"

namespace spk {

namespace {

const char* kind_name(FieldKind kind) {
  switch (kind) {
    case FieldKind::kBlob: return "blob";
    case FieldKind::kInt64: return "int64";
    case FieldKind::kFloat32: return "float32";
    case FieldKind::kFloat64: return "float64";
  }
  return "unknown";
}

// Where the bytes of a pack go.
struct Shares {
  PackSize size;
  uint64_t padding = 0;               // zeros between chunks
  uint64_t tables() const noexcept {  // heads, tables, index
    return size.total_bytes - size.payload_bytes - padding;
  }
};

Result<Shares> compute_shares(const Pack& pack) {
  Shares shares;
  shares.size = pack_size(pack.index().header, pack.shards());
  uint64_t data = 0;
  for (const ShardRow& shard : pack.shards()) data += shard.data_bytes;
  uint64_t used = 0;
  for (uint64_t i = 0; i < pack.chunk_count(); ++i) {
    SPK_ASSIGN(const ChunkLocation chunk, pack.chunk(i));
    used += chunk.used_bytes;
  }
  if (used > data || shares.size.payload_bytes > used) {
    return damaged("the index's sizes contradict each other").at_path(pack.path());
  }
  shares.padding = data - used;
  return shares;
}

std::string field_text(const Field& field) {
  std::string text = str_cat(escape_bytes(field.name), ' ', kind_name(field.kind));
  if (field.kind == FieldKind::kBlob || field.length == 1) return text;
  return str_cat(text, field.length == 0 ? "[]" : str_cat('[', field.length, ']'));
}

class InfoCommand : public Command {
 public:
  void add_to(CLI::App& app) override {
    sub_ = app.add_subcommand("info", "Show what a pack holds and how it lies on disk");
    sub_->add_option("PACK", path_, "A pack, or a folder of splits")->required();
    auto* chunks = sub_->add_flag("--chunks", chunks_, "Every chunk and its extent");
    auto* classes = sub_->add_flag("--classes", classes_, "Every class and how often it occurs");
    auto* digest = sub_->add_flag("--digest", digest_, "One line to cite this data by");
    chunks->excludes(classes)->excludes(digest);
    classes->excludes(chunks)->excludes(digest);
    digest->excludes(chunks)->excludes(classes);
    add_json_option(*sub_);
  }
  bool chosen() const override { return sub_->parsed(); }

  int run(Ui& ui) override {
    Result<std::vector<NamedPack>> packs = open_packs(path_);
    if (!packs.ok()) return ui.fail(packs.status());
    for (const NamedPack& named : *packs) {
      Status status;
      if (chunks_) {
        status = show_chunks(named, ui);
      } else if (classes_) {
        status = show_classes(named, ui);
      } else if (digest_) {
        show_digest(named, ui);
      } else {
        if (&named != &packs->front() && !ui.json_mode()) (void)ui.out("");
        status = ui.json_mode() ? show_json(named, ui) : show_text(named, ui);
      }
      if (!status.ok()) return ui.fail(status);
    }
    return kExitDone;
  }

 private:
  static Status show_text(const NamedPack& named, Ui& ui) {
    const Pack& pack = *named.pack;
    const IndexHeader& header = pack.index().header;
    SPK_ASSIGN(const Shares shares, compute_shares(pack));
    const auto line = [&](std::string_view name, std::string_view text) {
      const size_t width = 20;
      std::string start(name);
      start.append(start.size() < width ? width - start.size() : 1, ' ');
      (void)ui.out(str_cat(start, text));
    };
    const auto size_line = [&](std::string_view name, uint64_t bytes) {
      line(name, str_cat(format_size(bytes), "  (", format_count(bytes), " bytes, ",
                         percent_text(bytes, shares.size.total_bytes), ")"));
    };
    line("pack", escape_bytes(named.path));
    line("content id", pack.content_id().to_hex());
    line("plan id", pack.identity().plan_id.to_hex());
    line("format version", str_cat(header.version));
    line("samples", format_count(pack.sample_count()));
    line("rejected", format_count(header.reject_count));
    line("classes", format_count(pack.schema().classes.size()));
    std::string fields;
    for (const Field& field : pack.schema().fields) {
      fields += str_cat(fields.empty() ? "" : ", ", field_text(field));
    }
    line("fields", fields);
    line("shards", format_count(pack.shards().size()));
    line("chunks", str_cat(format_count(pack.chunk_count()), " of ",
                           format_size(pack.identity().chunk_bytes())));
    line("size",
         str_cat(format_size(shares.size.total_bytes), "  (", format_count(shares.size.total_bytes),
                 " bytes, ", shares.size.overhead_text(), ")"));
    size_line("  payload", shares.size.payload_bytes);
    size_line("  padding", shares.padding);
    size_line("  heads, index", shares.tables());
    (void)ui.out("settings");
    for (const auto& [name, value] : pack.settings()) {
      line(str_cat("  ", escape_bytes(name)), escape_bytes(value));
    }
    const auto run = read_run_record(pack.directory());
    if (!run.empty()) (void)ui.out("made by (not part of the pack's identity)");
    for (const auto& [name, value] : run) {
      line(str_cat("  ", escape_bytes(name)), escape_bytes(value));
    }
    return {};
  }

  static Status show_json(const NamedPack& named, Ui& ui) {
    const Pack& pack = *named.pack;
    const IndexHeader& header = pack.index().header;
    SPK_ASSIGN(const Shares shares, compute_shares(pack));
    JsonWriter json = json_line("pack");
    json.member_bytes("path", named.path);
    if (!named.split.empty()) json.member_bytes("split", named.split);
    json.member("content_id", pack.content_id().to_hex());
    json.member("plan_id", pack.identity().plan_id.to_hex());
    json.member("format_version", header.version).member("samples", pack.sample_count());
    json.member("rejects", header.reject_count).member("classes", pack.schema().classes.size());
    json.member("payload_bytes", shares.size.payload_bytes).member("padding_bytes", shares.padding);
    json.member("table_bytes", shares.tables()).member("total_bytes", shares.size.total_bytes);
    json.member("shards", pack.shards().size()).member("chunks", pack.chunk_count());
    json.member("chunk_bytes", pack.identity().chunk_bytes());
    json.member("blob_align_bytes", pack.identity().blob_align_bytes());
    json.key("fields").begin_array();
    for (const Field& field : pack.schema().fields) {
      json.begin_object().member("name", field.name).member("kind", kind_name(field.kind));
      json.member("length", field.length).end_object();
    }
    json.end_array();
    json.key("settings").begin_object();
    for (const auto& [name, value] : pack.settings()) json.key(escape_bytes(name)).bytes(value);
    json.end_object();
    json.key("run").begin_object();
    for (const auto& [name, value] : read_run_record(pack.directory())) {
      json.key(escape_bytes(name)).bytes(value);
    }
    json.end_object();
    (void)ui.json(json.end_object());
    return {};
  }

  static Status show_chunks(const NamedPack& named, Ui& ui) {
    const Pack& pack = *named.pack;
    const uint64_t chunk_bytes = pack.identity().chunk_bytes();
    if (!ui.json_mode()) {
      if (!named.split.empty()) (void)ui.out(str_cat("#split\t", escape_bytes(named.split)));
      (void)ui.out("#chunk\tshard\tslot\toffset\tspan\tfirst\tsamples\tused\tread\tchecksum");
    }
    for (uint64_t i = 0; i < pack.chunk_count(); ++i) {
      if (cancel_flag()) return cancel_status();
      SPK_ASSIGN(const ChunkLocation chunk, pack.chunk(i));
      const uint64_t slot = chunk.offset / chunk_bytes;
      const uint64_t span = divide_up(chunk.used_bytes, chunk_bytes);
      bool more;
      if (ui.json_mode()) {
        JsonWriter json = json_line("chunk");
        if (!named.split.empty()) json.member_bytes("split", named.split);
        json.member("chunk", i).member("shard", chunk.shard).member("slot", slot);
        json.member("offset", chunk.offset).member("span_slots", span);
        json.member("first_sample", chunk.first_sample).member("samples", chunk.sample_count);
        json.member("used_bytes", chunk.used_bytes).member("read_bytes", chunk.read_bytes);
        json.member("checksum", to_hex(chunk.header_checksum));
        more = ui.json(json.end_object());
      } else {
        more =
            ui.out(str_cat(i, '\t', chunk.shard, '\t', slot, '\t', chunk.offset, '\t', span, '\t',
                           chunk.first_sample, '\t', chunk.sample_count, '\t', chunk.used_bytes,
                           '\t', chunk.read_bytes, '\t', to_hex(chunk.header_checksum)));
      }
      if (!more) return {};
    }
    return {};
  }

  static Status show_classes(const NamedPack& named, Ui& ui) {
    const Pack& pack = *named.pack;
    const auto& classes = pack.schema().classes;
    const FactReader reader(pack);
    std::vector<uint64_t> counts(classes.size());
    for (uint64_t sample = 0; sample < pack.sample_count(); ++sample) {
      if (cancel_flag()) return cancel_status();
      SPK_ASSIGN(const SampleFacts facts, reader.read(sample));
      for (const int64_t label : facts.int_labels) {
        if (label >= 0 && static_cast<uint64_t>(label) < counts.size()) {
          ++counts[static_cast<size_t>(label)];
        }
      }
    }
    if (!ui.json_mode()) {
      if (!named.split.empty()) (void)ui.out(str_cat("#split\t", escape_bytes(named.split)));
      (void)ui.out("#label\tsamples\tclass");
    }
    for (size_t i = 0; i < classes.size(); ++i) {
      bool more;
      if (ui.json_mode()) {
        JsonWriter json = json_line("class");
        if (!named.split.empty()) json.member_bytes("split", named.split);
        json.member("label", i).member("samples", counts[i]).member_bytes("name", classes[i]);
        more = ui.json(json.end_object());
      } else {
        more = ui.out(str_cat(i, '\t', counts[i], '\t', escape_bytes(classes[i])));
      }
      if (!more) return {};
    }
    return {};
  }

  static void show_digest(const NamedPack& named, Ui& ui) {
    const Pack& pack = *named.pack;
    const uint64_t payload = pack.index().header.payload_bytes;
    if (ui.json_mode()) {
      JsonWriter json = json_line("digest");
      if (!named.split.empty()) json.member_bytes("split", named.split);
      json.member("content_id", pack.content_id().to_hex());
      json.member("samples", pack.sample_count()).member("payload_bytes", payload);
      (void)ui.json(json.end_object());
      return;
    }
    const std::string split = named.split.empty() ? "" : str_cat(' ', escape_bytes(named.split));
    (void)ui.out(str_cat("stripepack:1 ", pack.content_id().to_hex(), ' ', pack.sample_count(),
                         " samples ", payload, " bytes", split));
  }

  CLI::App* sub_ = nullptr;
  std::string path_;
  bool chunks_ = false;
  bool classes_ = false;
  bool digest_ = false;
};

}  // namespace

std::unique_ptr<Command> make_info_command() { return std::make_unique<InfoCommand>(); }

}  // namespace spk
