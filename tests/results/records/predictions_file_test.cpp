#include "results/records/predictions_file.hpp"

#include <hdf5.h>

#include <cmath>
#include <fstream>

#include "core/error.hpp"
#include "data/hdf5/sealed_file.hpp"
#include "tests/results/scores/predictions_case.hpp"
#include "tests/support/damage.hpp"
#include "tests/support/matchers.hpp"

namespace tpudist::test {
namespace {

namespace fs = std::filesystem;

std::string message_of_reading(const fs::path& path) {
  return message_of<DataError>([&] { PredictionsFile file(path); });
}

class PredictionsFileTest : public FolderTest {
 protected:
  // The case as a file.
  PredictionsFile file_of(const PredictionsCase& given) const {
    given.write(folder_ / "predictions.h5");
    return PredictionsFile(folder_ / "predictions.h5");
  }
};

TEST_F(PredictionsFileTest, GivesBackWhatWasWritten) {
  const PredictionsCase given;
  const PredictionsFile file = file_of(given);
  EXPECT_EQ(file.header().collection, "layout:xla:random");
  EXPECT_THAT(file.header().runs, ElementsAre(given.header.runs.front()));
  ASSERT_EQ(file.header().members.size(), 3u);
  EXPECT_EQ(file.header().members[1].fold, 1);
  EXPECT_EQ(file.header().members[0].first_loss, 3);
  EXPECT_THAT(file.header().members[1].first_loss, IsNan());
  EXPECT_EQ(file.header().members[0].loss_margin, 0.5);
  EXPECT_TRUE(file.header().members[2].failed);
  ASSERT_EQ(file.header().graphs.size(), 3u);
  for (int g = 0; g < 3; ++g) {
    const PredictionEntry &is = file.header().graphs[g], &was = given.header.graphs[g];
    EXPECT_EQ(is.name, was.name);
    EXPECT_EQ(is.split, was.split);
    EXPECT_EQ(is.fold, was.fold);
    EXPECT_EQ(is.rows, 3);
    EXPECT_EQ(is.configs, 4);
    EXPECT_EQ(is.held_out, was.held_out);
    const PredictionRows read = file.read(g);
    EXPECT_EQ(read.configs, given.graphs[g].configs);
    EXPECT_EQ(read.runtime, given.graphs[g].runtime);
    EXPECT_THAT(read.normalizer, IsEmpty());
    for (int m = 0; m < 3; ++m) {
      if (std::isnan(given.graphs[g].scores[m][0]))
        EXPECT_THAT(read.scores[m], Each(IsNan()));
      else
        EXPECT_EQ(read.scores[m], given.graphs[g].scores[m]);
    }
  }
}

TEST_F(PredictionsFileTest, KeepsWhichConfigurationsAreEqualWhereThatIsKnown) {
  PredictionsCase given;
  given.graphs[1].group = {4, 4, 0};
  const PredictionsFile file = file_of(given);
  EXPECT_THAT(file.read(0).group, IsEmpty());
  EXPECT_THAT(file.read(1).group, ElementsAre(4, 4, 0));
}

TEST_F(PredictionsFileTest, SaysByWhichRuleMembersWereCombined) {
  PredictionsCase given;
  given.write(folder_ / "unknown.h5");
  EXPECT_FALSE(PredictionsFile(folder_ / "unknown.h5").header().combination);
  given.header.combination = Combination{CombinationRule::softmax, 0.5};
  given.write(folder_ / "softmax.h5");
  EXPECT_EQ(PredictionsFile(folder_ / "softmax.h5").header().combination, given.header.combination);
}

TEST_F(PredictionsFileTest, SaysInWhichSlatesARunWasScored) {
  PredictionsCase given;
  given.header.runs[0].slate_configs = 128;
  given.header.runs[0].slate_permutations = 10;
  given.header.runs[0].slate_seed = 3;
  given.write(folder_ / "predictions.h5");
  EXPECT_THAT(PredictionsFile(folder_ / "predictions.h5").header().runs,
              ElementsAre(given.header.runs.front()));
}

TEST_F(PredictionsFileTest, KeepsSmallDifferencesOfLargeScores) {
  PredictionsCase given;
  given.graphs[0].scores[0] = {1e6 + 1e-4, 1e6 + 3e-4, 1e6 + 2e-4};  // equal as float32
  given.write(folder_ / "predictions.h5");
  const std::vector<double> scores = PredictionsFile(folder_ / "predictions.h5").read(0).scores[0];
  EXPECT_NEAR(scores[1] - scores[2], 1e-4, 1e-8);
  EXPECT_NEAR(scores[0], 1e6, 1e-3);
}

TEST_F(PredictionsFileTest, TakesTargetsOfTilesByTheirNormalizer) {
  EXPECT_THAT(file_of(PredictionsCase("tile:xla")).read(0).targets(), ElementsAre(1, 3, 4));
}

TEST_F(PredictionsFileTest, IsNotThereBeforeItIsFinished) {
  const PredictionsCase given;
  {
    PredictionsWriter writer(folder_ / "predictions.h5", given.header);
    writer.add(0, given.graphs[0]);
    writer.add(1, given.graphs[1]);
    EXPECT_THAT(message_of<Error>([&] { writer.finish(); }),
                HasSubstr("there are no predictions for unet"));
    EXPECT_THAT(message_of<Error>([&] { writer.add(1, given.graphs[1]); }),
                HasSubstr("predictions for resnet were given twice"));
  }
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(PredictionsFileTest, RefusesADamagedFile) {
  const fs::path path = folder_ / "predictions.h5";
  PredictionsCase().write(path);
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(fs::file_size(path)) - 20);
    file.put('x');
  }
  EXPECT_EQ(message_of_reading(path),
            path.string() + ": damaged or cut short: size or hash are not those of its first line");
  fs::resize_file(path, fs::file_size(path) / 2);
  EXPECT_THAT(message_of_reading(path), HasSubstr("damaged or cut short"));
  fs::resize_file(path, 0);
  EXPECT_THAT(message_of_reading(path), HasSubstr("damaged or cut short"));
  EXPECT_THROW(PredictionsFile(folder_ / "none.h5"), IoError);
}

// Changes a file with the HDF5 library and seals it again.
void change(const fs::path& path, const std::function<void(hid_t)>& action) {
  {
    const Hdf5Lock lock;
    const Hdf5Id file(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
    ASSERT_GE(file.get(), 0);
    action(file.get());
  }
  seal_file(path);
}

// Writes one element of a dataset.
template <typename T>
void set(hid_t file, const char* name, std::size_t element, T value) {
  const Hdf5Id dataset(H5Dopen2(file, name, H5P_DEFAULT), H5Dclose);
  const Hdf5Id space(H5Dget_space(dataset.get()), H5Sclose);
  std::vector<T> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space.get())));
  const hid_t type = hdf5_type(element_type<T>());
  H5Dread(dataset.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  values[element] = value;
  H5Dwrite(dataset.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
}

TEST_F(PredictionsFileTest, RefusesWhatDoesNotFitTogether) {
  const fs::path path = folder_ / "predictions.h5";
  const auto message_after = [&](const std::function<void(hid_t)>& action) {
    PredictionsCase().write(path);
    change(path, action);
    return message_of_reading(path);
  };
  EXPECT_THAT(message_after([](hid_t file) { set<std::int32_t>(file, "/members/number", 1, 0); }),
              HasSubstr("member 0 of run 0 is there twice"));
  EXPECT_THAT(message_after([](hid_t file) { set<std::int32_t>(file, "/members/fold", 1, 2); }),
              HasSubstr("holds out fold 2 of 2"));
  EXPECT_THAT(message_after([](hid_t file) { set<std::int32_t>(file, "/members/run", 1, 3); }),
              HasSubstr("of run 3"));
  EXPECT_THAT(message_after([](hid_t file) { set<std::int64_t>(file, "/graphs/begin", 1, 9); }),
              HasSubstr("has 9 rows of 4 configurations"));
  EXPECT_THAT(message_after([](hid_t file) { set<std::int64_t>(file, "/graphs/begin", 3, 10); }),
              HasSubstr("/rows/config: is i32 [9] but must be i32 [10]"));
  EXPECT_THAT(message_after([](hid_t file) { set<std::uint8_t>(file, "/graphs/held_out", 1, 2); }),
              HasSubstr("held_out must be 0 or 1"));
  EXPECT_THAT(message_after([](hid_t file) { H5Ldelete(file, "/rows/score", H5P_DEFAULT); }),
              HasSubstr("/rows/score: the dataset is missing"));
  EXPECT_THAT(message_after([](hid_t file) { H5Ldelete(file, "/graphs", H5P_DEFAULT); }),
              HasSubstr(path.string()));
  EXPECT_THAT(message_after([](hid_t file) { H5Adelete(file, "format"); }), HasSubstr("format"));

  PredictionsCase().write(path);
  change(path, [](hid_t file) { set<std::int32_t>(file, "/rows/config", 1, 4); });
  const PredictionsFile file(path);
  EXPECT_THAT(message_of<DataError>([&] { file.read(0); }),
              HasSubstr("configurations of bert are not numbers of 4, rising"));
}

// Seeded damages of predictions: each is an error of one line that names the file. TPUDIST_DAMAGES
// says how many.
TEST(PredictionsDamage, IsFound) {
  const TempDir folder;
  const auto path = folder / "predictions.h5";
  PredictionsCase().write(path);
  const std::string sound = read_text_file(path);
  for (int seed = 0; seed < damage_count(200); ++seed) {
    overwrite(path, damaged(sound, static_cast<std::uint64_t>(seed)));
    const std::string message = message_of<DataError>([&] { PredictionsFile file(path); });
    EXPECT_EQ(fault_of_message(message, path), "") << seed;
  }
}

}  // namespace
}  // namespace tpudist::test
