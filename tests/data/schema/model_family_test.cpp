#include "data/schema/model_family.hpp"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/error.hpp"
#include "core/random.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist::test {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using Names = std::vector<std::string>;

TEST(ModelFamily, OfTheGraphsOfTheDataSet) {
  const std::map<std::string, Names> families = {
      {"resnet",
       {"resnet50.4x4.fp16", "resnet50.8x16.fp16", "resnet_v1_50_official_batch_128_bf16",
        "resnet_v2_152_batch_128", "resnet_v2_101_batch_128", "mlperf_resnet_batch_128_1_shard",
        "inference_mlperf_resnet_batch_256", "resnet_main_10904"}},
      {"wideresnet", {"wideresnet.4x4.bf16", "wide_resnet_batch_8"}},
      {"bert",
       {"bert_pretraining.4x4.fp16", "bert_squad.2x2.fp32", "mlperf_bert_batch_24_2x2",
        "tf2_bert_pretrain_dynamic_batch_size", "tf2_bert_pretrain_dynamic_sequence_length"}},
      {"bert_l2", {"small_bert_bert_en_uncased_L-2_H-128_A-2_batch_size_16_train"}},
      {"bert_l12",
       {"small_bert_bert_en_uncased_L-12_H-768_A-12_batch_size_32_test",
        "bert_en_cased_L-12_H-768_A-12_batch_size_16_train",
        "bert_multi_cased_L-12_H-768_A-12_batch_size_64_test"}},
      {"albert", {"albert_en_xlarge_batch_size_16_test", "albert_en_base_batch_size_64_train"}},
      {"electra", {"electra_small_batch_size_16_test", "electra_large_batch_size_32_train"}},
      {"talking_heads", {"talking-heads_large_batch_size_16_train", "talking-heads_base"}},
      {"inception", {"inception_v3_batch_128_train", "inception_v2_batch_8_train", "inceptionv4"}},
      {"xception", {"xception_imagenet", "xception.2x2.bf16"}},
      {"unet", {"unet_3d.4x4.bf16", "unet3d.2x2.fp32"}},
      {"alexnet", {"alexnet_train_batch_32"}},
      {"mnasnet", {"mnasnet_a1_batch_128", "mnasnet_b1_batch_128"}},
      {"efficientnet", {"efficientnet_b7_eval_batch_1"}},
      {"mask_rcnn",
       {"mask_rcnn_batch_16_bf16_img1024", "mask_rcnn_resnet50.4x4.bf16.performance",
        "mlperf_maskrcnn_1_shard_batch_4"}},
      {"ssd",
       {"ssd_resnet50.4x4.fp16", "inference_mlperf_ssd_1200_batch_1",
        "mlperf_ssd_2_shard_batch_8_fast_epoch"}},
      {"retinanet", {"retinanet.4x4.bf16.performance", "retinanet.2x2.fp32"}},
      {"shapemask", {"shapemask.4x4.fp32"}},
      {"transformer",
       {"transformer.4x4.fp32", "transformer_tf2_dynamic_shape", "mlperf_transformer"}},
      {"magenta", {"magenta_dynamic", "magenta"}},
      {"openai", {"openai_v0_rnn_natural", "openai_v0_rnn_sequence_batch_32"}},
      {"trax", {"trax_lsh_attention"}},
      {"ncf", {"ncf.2x2.fp32"}},
  };
  for (const auto& [family, names] : families) {
    for (const std::string& name : names) EXPECT_EQ(model_family(name), family) << name;
  }
}

TEST(ModelFamily, OfAnotherNameIsWhatIsLeftOfIt) {
  const std::map<std::string, std::string> families = {
      {"lstm_text_batch_size_16_train", "lstm_text"},
      {"NewNet.2x2x2.bf16.performance", "newnet"},
      {"new-net_v3_batch_64_img512_bs8", "new_net"},
      {"deep_H-768_A-12", "deep"},
      {"conv1.4x4.fp16", "conv1"},
      {"resnet50.2x4.fp16_-5f6e93c2afb5df51", "resnet"},  // a tile kernel that names its model
      {"newnet_train_batch_32_-5f6e93c2afb5df51", "newnet"}};
  for (const auto& [name, family] : families) EXPECT_EQ(model_family(name), family) << name;
  // No SSD, although "ss_d" is in one; tile kernels; odd names.
  for (const std::string name :
       {"brax_es", "ssdeep", "loss_density", "fusion.206_10", "reshape.37_12", "copy.24",
        "d6f5f54247bd1e58a10b9e7062c636ab", "batch_32", "4x4", "...", "_", "12", "x", ""})
    EXPECT_EQ(model_family(name), name);
}

RC_GTEST_PROP(ModelFamilyProperty, AnyNameHasAFamily, (const std::string& name)) {
  RC_ASSERT(model_family(name).empty() == name.empty());
}

// Six families, of 4, 3, 2, 1, 1 and 1 graphs.
const Names kNames = {"resnet50.4x4.fp16", "resnet50.8x8.fp16", "resnet_v2_50", "mlperf_resnet",
                      "bert_squad",        "bert_pretraining",  "mlperf_bert",  "ssd.2x2.fp16",
                      "ssd.4x4.fp16",      "unet_3d.4x4.bf16",  "magenta",      "xception"};

TEST(AssignFolds, KeepsFamiliesTogetherAndFoldsLevel) {
  const std::vector<int> folds = assign_folds(kNames, std::vector<double>(12, 1.0), 3, 1);
  std::map<std::string, std::set<int>> folds_of;
  std::map<int, int> graphs_in;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    folds_of[model_family(kNames[i])].insert(folds[i]);
    ++graphs_in[folds[i]];
  }
  for (const auto& [family, in] : folds_of) EXPECT_EQ(in.size(), 1u) << family;
  EXPECT_EQ(graphs_in, (std::map<int, int>{{0, 4}, {1, 4}, {2, 4}}));
}

TEST(AssignFolds, WeighsGraphs) {
  // The family of one heavy graph has a fold of its own.
  std::vector<double> weights(12, 1.0);
  weights[11] = 100;
  const std::vector<int> folds = assign_folds(kNames, weights, 2, 1);
  for (std::size_t i = 0; i < 11; ++i) EXPECT_NE(folds[i], folds[11]);
}

TEST(AssignFolds, DependsOnTheSeedAndNotOnTheOrderOfGraphs) {
  const std::vector<double> weights(12, 1.0);
  std::set<std::vector<int>> different;
  for (std::uint64_t seed = 0; seed < 10; ++seed)
    different.insert(assign_folds(kNames, weights, 3, seed));
  EXPECT_GT(different.size(), 1u);

  const std::vector<int> folds = assign_folds(kNames, weights, 3, 5);
  EXPECT_EQ(assign_folds(kNames, weights, 3, 5), folds);
  Names reversed = kNames;
  std::ranges::reverse(reversed);
  std::vector<int> reversed_folds = assign_folds(reversed, weights, 3, 5);
  std::ranges::reverse(reversed_folds);
  EXPECT_EQ(reversed_folds, folds);
}

TEST(AssignFolds, GivesEveryFoldLargeAndSmallFamilies) {
  // Three families of about 1000, three of about 10.
  const Names names = {"neta", "netb", "netc", "netd", "nete", "netf"};
  const std::vector<double> weights = {1000, 900, 800, 10, 9, 8};
  std::set<std::vector<int>> different;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<int> folds = assign_folds(names, weights, 3, seed);
    EXPECT_EQ(std::set<int>(folds.begin(), folds.begin() + 3).size(), 3u);
    different.insert(folds);
  }
  EXPECT_GT(different.size(), 3u);  // families of about the same size change places
}

TEST(AssignFolds, LeavesNoFoldEmpty) {
  for (const double weight : {1.0, 0.0}) {
    const std::vector<int> folds = assign_folds(kNames, std::vector<double>(12, weight), 6, 1);
    EXPECT_EQ(std::set<int>(folds.begin(), folds.end()).size(), 6u);
  }
  EXPECT_THAT(assign_folds(kNames, std::vector<double>(12, 1.0), 1, 1), Each(0));
}

TEST(AssignFolds, NamesTheFamiliesWhenTheyAreTooFew) {
  EXPECT_THAT(
      message_of<ConfigError>([&] {
        assign_folds({"resnet50.4x4.fp16", "resnet50.8x8.fp16", "magenta"}, {1, 1, 1}, 5, 1);
      }),
      HasSubstr("5 folds need as many model families, but the 3 graphs are "
                "of 2: magenta, resnet"));
}

TEST(AssignFolds, RefusesWhatIsNoWeight) {
  EXPECT_THROW(assign_folds({"a", "b"}, {1}, 2, 1), ConfigError);
  EXPECT_THROW(assign_folds({"a", "b"}, {1, -1}, 2, 1), ConfigError);
  EXPECT_THROW(assign_folds({"a", "b"}, {1, std::nan("")}, 2, 1), ConfigError);
  EXPECT_THROW(assign_folds({"a", "b"}, {1, 1}, 0, 1), ConfigError);
}

RC_GTEST_PROP(AssignFoldsProperty, NoFoldIsHeavierThanTheLightestByMoreThanAFamily, ()) {
  const int folds = *rc::gen::inRange(1, 6);
  const int families = *rc::gen::inRange(folds, 20);
  Names names;
  std::vector<double> weights, family_weight(families), fold_weight(folds);
  for (int f = 0; f < families; ++f) {
    const int members = *rc::gen::inRange(1, 5);
    for (int m = 0; m < members; ++m) {
      names.push_back("net" + std::string(1, static_cast<char>('a' + f)) + "_batch_" +
                      std::to_string(m));
      weights.push_back(*rc::gen::inRange(0, 100));
      family_weight[f] += weights.back();
    }
  }
  const std::vector<int> fold_of = assign_folds(names, weights, folds, 3);
  for (std::size_t i = 0; i < names.size(); ++i) fold_weight[fold_of.at(i)] += weights[i];
  RC_ASSERT(std::ranges::max(fold_weight) - std::ranges::min(fold_weight) <=
            std::ranges::max(family_weight));
}

}  // namespace
}  // namespace tpudist::test
