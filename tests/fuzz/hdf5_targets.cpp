// Shards and checkpoints whose content is wrong though all their checksums are right. HDF5's own bytes are
// not changed: the input says how the objects of a sound file are edited, so that the faults that are found
// are those of this project.

#include <hdf5.h>

#include <array>
#include <cstring>

#include "core/file_system.hpp"
#include "core/hash.hpp"
#include "core/random.hpp"
#include "data/convert/graph_converter.hpp"
#include "data/convert/verifier.hpp"
#include "data/hdf5/sealed_file.hpp"
#include "data/loading/dataset.hpp"
#include "data/shards/manifest.hpp"
#include "results/checkpoints/checkpoint.hpp"
#include "tests/data/npz/npz_fixture.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace tpudist::test {
namespace {

// Choices that the input makes; all are the first one where it has ended.
class Choices {
 public:
  explicit Choices(std::string_view bytes) : bytes_(bytes) {}
  bool any() const { return !bytes_.empty(); }
  std::size_t below(std::size_t count) { return byte() % count; }
  std::int64_t number() {
    constexpr std::int64_t kBig = std::int64_t{1} << 62;
    constexpr std::array<std::int64_t, 12> kNumbers = {
        0,       -1,      1, INT64_MIN, INT64_MAX, kBig, INT32_MAX, std::int64_t{1} << 32,
        1 << 28, 1 << 20, 2, 18};
    const std::size_t kind = byte();
    if (kind < 160) return static_cast<std::int64_t>(kind % 32);
    if (kind < 240) return kNumbers[kind % kNumbers.size()];
    std::int64_t number = 0;
    for (int i = 0; i < 8; ++i)
      number = static_cast<std::int64_t>((std::uint64_t(number) << 8) | byte());
    return number;
  }
  std::string text() {
    const std::size_t size = std::min(byte(), bytes_.size());
    const std::string text(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    return text;
  }

 private:
  std::size_t byte() {
    if (bytes_.empty()) return 0;
    const auto byte = static_cast<unsigned char>(bytes_.front());
    bytes_.remove_prefix(1);
    return byte;
  }
  std::string_view bytes_;
};

std::vector<std::string> object_names(hid_t file) {
  std::vector<std::string> names;
  const auto keep = [](hid_t, const char* name, const H5O_info_t*, void* out) -> herr_t {
    static_cast<std::vector<std::string>*>(out)->emplace_back(name);
    return 0;
  };
  H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, keep, &names, H5O_INFO_BASIC);
  return names;
}

std::vector<std::string> attribute_names(hid_t object) {
  std::vector<std::string> names;
  const auto keep = [](hid_t, const char* name, const H5A_info_t*, void* out) -> herr_t {
    static_cast<std::vector<std::string>*>(out)->emplace_back(name);
    return 0;
  };
  H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, nullptr, keep, &names);
  return names;
}

Hdf5Id text_type(std::size_t bytes) {
  Hdf5Id type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.get(), bytes);
  H5Tset_cset(type.get(), H5T_CSET_UTF8);
  return type;
}

void edit_attribute(hid_t object, Choices& from) {
  const std::vector<std::string> names = attribute_names(object);
  if (names.empty()) return;
  const std::string& name = names[from.below(names.size())];
  const std::size_t kind = from.below(6);
  H5Adelete(object, name.c_str());
  if (kind == 0) return;
  const auto write = [&](hid_t type, const std::vector<hsize_t>& shape, const void* value) {
    const Hdf5Id space(
        shape.empty() ? H5Screate(H5S_SCALAR)
                      : H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr),
        H5Sclose);
    const Hdf5Id attribute(
        H5Acreate2(object, name.c_str(), type, space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
    if (attribute.get() >= 0) H5Awrite(attribute.get(), type, value);
  };
  const std::int64_t number = from.number();
  const std::string text = from.text();
  const char* const pointer = text.c_str();
  const double real = static_cast<double>(number);
  if (kind <= 2) return write(H5T_NATIVE_INT64, {}, &number);
  if (kind == 3) return write(text_type(H5T_VARIABLE).get(), {}, &pointer);
  if (kind == 4) return write(H5T_NATIVE_DOUBLE, {1}, &real);
  write(text_type(text.size() + 1).get(), {}, text.c_str());
}

// Changes bytes of a small dataset's elements.
void edit_elements(hid_t dataset, Choices& from) {
  const Hdf5Id type(H5Dget_type(dataset), H5Tclose), space(H5Dget_space(dataset), H5Sclose);
  const hssize_t count = H5Sget_simple_extent_npoints(space.get());
  const std::size_t width = H5Tget_size(type.get());
  if (count < 1 || count > 1 << 16 || width > 64) return;
  std::vector<char> bytes(static_cast<std::size_t>(count) * width);
  if (H5Dread(dataset, type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()) < 0) return;
  for (std::size_t i = 1 + from.below(4); i > 0; --i) {
    const std::size_t element =
        (from.below(256) * 256 + from.below(256)) % static_cast<std::size_t>(count);
    const std::int64_t number = from.number();
    std::memcpy(&bytes[element * width], &number, std::min(width, sizeof number));
  }
  H5Dwrite(dataset, type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data());
}

// Another dataset in place of an object, whose elements are zeros or missing.
void replace_by_dataset(hid_t file, const std::string& name, Choices& from) {
  const hid_t types[] = {H5T_STD_I8LE,  H5T_STD_I16LE,  H5T_STD_I32LE,  H5T_STD_I64LE, H5T_STD_U8LE,
                         H5T_STD_U16LE, H5T_IEEE_F32LE, H5T_IEEE_F64LE, H5T_STD_I32BE, H5T_C_S1};
  const hid_t type = types[from.below(std::size(types))];
  std::vector<hsize_t> shape(from.below(5)), chunk;
  for (hsize_t& size : shape) size = static_cast<hsize_t>(from.number());
  const Hdf5Id properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  const std::size_t layout = from.below(3);
  if (layout == 0 && !shape.empty()) {
    for (const hsize_t size : shape) chunk.push_back(std::clamp<hsize_t>(size, 1, 1 << 14));
    chunk[0] = 1 + from.below(256);
    H5Pset_chunk(properties.get(), static_cast<int>(chunk.size()), chunk.data());
    if (from.below(4) > 0) H5Pset_deflate(properties.get(), 1);
  } else if (layout == 1) {
    H5Pset_layout(properties.get(), H5D_COMPACT);
  }
  const Hdf5Id space(shape.empty()
                         ? H5Screate(H5S_SCALAR)
                         : H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr),
                     H5Sclose);
  H5Ldelete(file, name.c_str(), H5P_DEFAULT);
  const Hdf5Id made(
      H5Dcreate2(file, name.c_str(), type, space.get(), H5P_DEFAULT, properties.get(), H5P_DEFAULT),
      H5Dclose);
}

void edit(const std::filesystem::path& path, Choices& from) {
  const Hdf5Lock lock;
  const Hdf5Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_libver_bounds(access.get(), H5F_LIBVER_V110, H5F_LIBVER_V110);
  H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG);
  const Hdf5Id opened(H5Fopen(path.c_str(), H5F_ACC_RDWR, access.get()), H5Fclose);
  if (opened.get() < 0) throw std::runtime_error("cannot edit " + path.string());
  const hid_t file = opened.get();
  const std::vector<std::string> names = object_names(file);  // "." is the first
  for (int edits = 0; from.any() && edits < 12; ++edits) {
    const std::string& name = names[from.below(names.size())];
    const std::string& other = names[from.below(names.size())];
    const Hdf5Id object(H5Oopen(file, name.c_str(), H5P_DEFAULT), H5Oclose);
    if (object.get() < 0) continue;
    const bool is_dataset = H5Iget_type(object.get()) == H5I_DATASET;
    const std::size_t kind = from.below(12);
    if (kind < 4 && !is_dataset) {
      edit_attribute(object.get(), from);
    } else if (kind < 7 && is_dataset) {
      edit_elements(object.get(), from);
    } else if (name == ".") {
      continue;
    } else if (kind < 9) {
      replace_by_dataset(file, name, from);
    } else if (H5Ldelete(file, name.c_str(), H5P_DEFAULT) >= 0 && kind > 9) {
      if (kind == 10) {
        H5Lcreate_soft(("/" + other).c_str(), file, name.c_str(), H5P_DEFAULT, H5P_DEFAULT);
      } else {
        H5Lcreate_hard(file, other.c_str(), file, name.c_str(), H5P_DEFAULT, H5P_DEFAULT);
      }
    }
  }
}

// Programs of edits: none, then by chance.
std::vector<std::string> edit_seeds(std::size_t bases) {
  std::vector<std::string> seeds;
  for (std::size_t base = 0; base < bases; ++base) seeds.emplace_back(1, static_cast<char>(base));
  for (std::uint64_t number = 0; number < 40; ++number) {
    CounterRng random(mix_key({number, 0x65646974}));
    std::string seed(1, static_cast<char>(number % bases));
    for (std::uint64_t i = 0; i < 8 + number; ++i) seed += static_cast<char>(random.below(256));
    seeds.push_back(std::move(seed));
  }
  return seeds;
}

struct SoundShard {
  Collection collection;
  std::string bytes;
};

// Of layouts with codes and without, and of tiles.
const std::vector<SoundShard>& sound_shards() {
  static const std::vector<SoundShard> shards = [] {
    NpzFixture distinct = NpzFixture::layout();  // no two configurations are equal
    CounterRng random(8);
    distinct.c = 60;
    distinct.features.clear();
    distinct.runtime.assign(60, 100);
    for (std::int64_t i = 0; i < distinct.c * 2 * kLayoutConfigFeatures; ++i)
      distinct.features.push_back(static_cast<float>(random.below(7)) - 1);
    std::vector<SoundShard> made;
    ThreadPool pool(1);
    for (const NpzFixture& fixture : {NpzFixture::layout(), NpzFixture::make_tile(), distinct}) {
      const auto npz = scratch_file("sound.npz"), path = scratch_file("sound.h5");
      fixture.write(npz);
      const Collection collection{fixture.tile ? "tile:xla" : "layout:xla:random"};
      ShardWriter shard(path, collection, "train", pool);
      convert_graph(NpzReader(npz), collection, "train", {}, shard);
      shard.close();
      made.push_back({collection, read_text_file(path)});
    }
    return made;
  }();
  return shards;
}

// As `verify` and as a training read it, through a manifest that agrees with it.
bool read_shard(std::string_view bytes) {
  Choices from(bytes);
  const SoundShard& sound = sound_shards()[from.below(sound_shards().size())];
  const std::filesystem::path root = scratch_file("shards"),
                              folder = root / sound.collection.folder();
  std::filesystem::create_directories(folder / "train");
  const auto path = input_file((folder / "train/shard-00000.h5").string(), sound.bytes);
  edit(path, from);
  ShardSummary summary;
  if (!accepts([&] { summary = summarize_shard(path); })) return false;
  bool sound_graphs = true;
  for (const GraphSummary& graph : summary.graphs) {
    sound_graphs &=
        accepts([&] { verify_graph(path, graph, sound.collection, "train", std::nullopt); });
  }
  if (summary.graphs.empty()) return false;  // nothing to train on
  Manifest manifest;
  manifest.collection = sound.collection;
  manifest.shards.push_back({"train/shard-00000.h5", "train", std::filesystem::file_size(path),
                             hash_file(path), summary.graphs});
  write_manifest(manifest, folder / kManifestName);
  return sound_graphs & accepts([&] {
           static ThreadPool pool(1);
           DatasetOptions options;
           options.shards = root;
           options.collection = sound.collection;
           options.split = "train";
           options.cache = CacheMode::memory;
           const Dataset dataset = Dataset::open(options, pool);
           for (int g = 0; g < dataset.size(); ++g) {
             std::vector<std::int64_t> rows(static_cast<std::size_t>(dataset.rows(g)));
             for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int64_t>(i);
             dataset.slate(g, rows);
             dataset.states(g);
           }
         });
}

ParameterTable small_table() {
  ParameterTable table;
  table.add("encoder.weight", {3, 5});
  table.add("output.weight", {5, 1}, ParameterGroup::output);
  return table;
}

// Without and with all that a run may keep.
const std::vector<std::string>& sound_checkpoints() {
  static const std::vector<std::string> checkpoints = [] {
    const ParameterTable table = small_table();
    Checkpoint checkpoint;
    checkpoint.step = 123;
    checkpoint.config = "name: tiny\nbatch: {slates: 4}\n";
    checkpoint.members = 2;
    const std::vector<float> flat(static_cast<std::size_t>(2 * table.length()), 0.5f);
    checkpoint.parameters = checkpoint.first_moment = checkpoint.second_moment = flat;
    checkpoint.optimizer_steps = {123, 124};
    checkpoint.best_score = {0.1, 0.2};
    checkpoint.best_step = {0, 100};
    checkpoint.failed = {1, 0};
    checkpoint.losses.assign(60, 0.5);
    checkpoint.numbers = {{"train_seconds", 1.5}};
    std::vector<std::string> made;
    for (const bool all : {false, true}) {
      if (all) {
        checkpoint.changed_keys = "name\nbatch.slates";
        checkpoint.fold_hash = 9;
        checkpoint.average = flat;
        checkpoint.average_points = {0, 17};
        checkpoint.stop_best = {0.5, 0.6};
        checkpoint.stop_waited = checkpoint.stopped_at = {1, 2};
      }
      const auto path = scratch_file("sound-checkpoint.h5");
      save_checkpoint(path, checkpoint, table);
      made.push_back(read_text_file(path));
    }
    return made;
  }();
  return checkpoints;
}

bool read_checkpoint(std::string_view bytes) {
  Choices from(bytes);
  const auto path =
      input_file("checkpoint.h5", sound_checkpoints()[from.below(sound_checkpoints().size())]);
  edit(path, from);
  seal_file(path);
  CheckpointSummary summary;
  bool read = accepts([&] { summary = CheckpointFile(path).summary(); });
  if (read) accepts([&] { summary.entries(); }, ErrorKind::usage, true);
  read &= accepts([&] { CheckpointFile(path).load(small_table()); });
  ParameterTable table;
  if (!accepts([&] { table = CheckpointFile(path).parameters(); })) return false;
  return read & accepts([&] { CheckpointFile(path).load(table); });
}

}  // namespace

FuzzTarget shard_target() {
  return {"shard", read_shard, [] { return edit_seeds(sound_shards().size()); }};
}

FuzzTarget checkpoint_target() {
  return {"checkpoint", read_checkpoint, [] { return edit_seeds(sound_checkpoints().size()); }};
}

}  // namespace tpudist::test
