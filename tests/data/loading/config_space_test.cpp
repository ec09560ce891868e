#include "data/loading/config_space.hpp"

#include <gmock/gmock.h>

#include <set>

#include "tests/data/hlo/sketched_module.hpp"
#include "tests/data/loading/dataset_case.hpp"

namespace tpudist::test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Point = ConfigSpace::Point;

// Groups of operations 0 and 2, of 1, and of 3, with 2, 2 and 9 choices. Operation 4 has one state.
LayoutSpace layouts() {
  LayoutSpace space = layout_space(sketched_module("p = f32[4,6] parameter(0)\n"
                                                   "q = f32[3,5] parameter(1)\n"
                                                   "a = f32[4,6] reshape(p)\n"
                                                   "b = f32[4,6] reshape(p)\n"
                                                   "c = f32[4,6] reshape(p)\n"
                                                   "d = f32[4,6] dot(p, p)\n"
                                                   "e = f32[5,3] reshape(q)"),
                                   {}, "m");
  space.nodes[4].states.resize(1);
  space.nodes[4].standard = 0;
  set_standard(space.nodes[1], space.nodes[1].states[0]);
  group_alike(space);
  return space;
}

std::vector<Point> all_points(const ConfigSpace& space) {
  std::vector<Point> points{{}};
  for (const ConfigSpace::Group& group : space.groups) {
    std::vector<Point> longer;
    for (const Point& point : points) {
      for (std::uint16_t c = 0; c < group.choices.size(); ++c) {
        longer.push_back(point);
        longer.back().push_back(c);
      }
    }
    points = std::move(longer);
  }
  return points;
}

TEST(ConfigSpace, HasTheConfigurationsOfItsLayouts) {
  const LayoutSpace made = layouts();
  const ConfigSpace space = config_space(made);
  ASSERT_EQ(space.groups.size(), 3u);  // one state is no choice
  EXPECT_EQ(space.size(), 36);
  EXPECT_EQ(space.size(), made.size());
  EXPECT_EQ(space.config(space.standard_point), made.standard());
  EXPECT_EQ(space.rows(space.standard_point), space.standard);
  const std::vector<Point> points = all_points(space);
  std::set<LayoutConfig> configs;
  for (const Point& point : points) {
    const LayoutConfig config = space.config(point);
    EXPECT_EQ(config[0], config[2]);
    EXPECT_EQ(config[4], made.nodes[4].standard);
    configs.insert(config);
  }
  EXPECT_EQ(configs.size(), 36u);
  EXPECT_EQ(distance(points[0], points[0]), 0);
  EXPECT_EQ(distance({0, 1, 2}, {0, 0, 3}), 2);
}

TEST(ConfigSpace, WithoutGroupsEachOperationHasAChoice) {
  const ConfigSpace space = config_space(layouts()), free = space.without_groups();
  EXPECT_EQ(free.groups.size(), 4u);
  EXPECT_EQ(free.size(), 2 * 36);
  EXPECT_EQ(free.rows(free.standard_point), space.standard);
  EXPECT_EQ(space.broken_share(free.standard_point), 0);
  // Choices of operations 0, 2, 1 and 3: where 0 and 2 differ, one of five operations is not laid
  // out like the rest of its group.
  Point broken = free.standard_point;
  broken[0] ^= 1;
  EXPECT_DOUBLE_EQ(space.broken_share(broken), 0.2);
  broken[1] ^= 1;
  broken[3] = 4;
  EXPECT_EQ(space.broken_share(broken), 0);
}

class ListedLayouts : public ::testing::Test {
 protected:
  Module read(const NpzFixture& f) {
    const auto path = folder_ / "net.npz";
    f.write(path);
    return read_module(path, kLayout);
  }
  static std::vector<float> features_of_points(const Module& module, const ConfigSpace& space,
                                               const std::vector<Point>& points) {
    return features_of(module.dataset, space.slate(points));
  }
  const TempDir folder_;
};

// The two operations of that file change together, and one of four states is the default's.
TEST_F(ListedLayouts, AreThoseOfTheFile) {
  NpzFixture f = NpzFixture::layout();
  Module module = read(f);
  const LayoutSpace listed = listed_layouts(module);
  EXPECT_THAT(listed.groups, ElementsAre(ElementsAre(0, 1)));
  ASSERT_EQ(listed.nodes.size(), 2u);
  EXPECT_EQ(listed.nodes[1].node, 3);
  EXPECT_EQ(listed.nodes[1].name, "node_config_ids[1]");
  const ConfigSpace space = config_space(listed);
  EXPECT_EQ(space.size(), 4);
  std::vector<Point> points;
  for (std::int64_t row = 0; row < 6; ++row)
    points.push_back(space.point_of(module.dataset, row).value());
  EXPECT_EQ(features_of_points(module, space, points), f.features);
  EXPECT_EQ(points[0], space.standard_point);
  EXPECT_EQ(points[0], points[5]);
  EXPECT_EQ(space.slate(std::span(points).first(3)).local_states.size(),
            4u * kLayoutConfigFeatures);
  // A state that the space has not.
  std::fill_n(f.features.begin(), 2 * kLayoutConfigFeatures, 5.0f);
  const Module changed = read(f);
  EXPECT_EQ(space.point_of(changed.dataset, 0), std::nullopt);
  EXPECT_EQ(space.point_of(changed.dataset, 3), points[3]);
  module.standard = 3;
  EXPECT_EQ(config_space(listed_layouts(module)).standard_point, points[3]);
}

// Coded, or kept as they are because coding does not pay for states that never repeat. Two
// operations whose states never repeat map one to one.
TEST_F(ListedLayouts, PartOperationsThatChangeAlone) {
  for (const NpzFixture& f : {many_configs(2000, 40), never_equal_configs(20)}) {
    const Module module = read(f);
    EXPECT_EQ(module.dataset.coded(0), f.c == 2000);
    const ConfigSpace space = config_space(listed_layouts(module));
    ASSERT_EQ(space.groups.size(), f.c == 2000 ? 2u : 1u);
    std::vector<Point> points;
    for (std::int64_t row = 0; row < f.c; ++row)
      points.push_back(space.point_of(module.dataset, row).value());
    EXPECT_EQ(features_of_points(module, space, points), f.features);
  }
}

TEST_F(ListedLayouts, RefuseWhatIsNoLayout) {
  const auto refusal = [&](const NpzFixture& f) {
    const Module module = read(f);
    return message_of<DataError>([&] { listed_layouts(module); });
  };
  for (const float odd : {0.5f, 6.0f, -2.0f}) {
    NpzFixture f = NpzFixture::layout();
    f.features[20] = odd;
    EXPECT_THAT(refusal(f), HasSubstr("which is no dimension of a layout"));
  }
  EXPECT_THAT(refusal(never_equal_configs(2000)), HasSubstr("hardly repeat"));
}

TEST_F(ListedLayouts, ADatasetOfOtherConfigurationsHoldsThemAlone) {
  const Module module = read(NpzFixture::layout());
  const ConfigSpace space = config_space(listed_layouts(module));
  const std::vector<Point> points = all_points(space);
  const Slate slate = space.slate(points);
  const Dataset made = Dataset::of_slate(module.dataset.options(), module.dataset.entry(0),
                                         module.dataset.graph(0), slate);
  ASSERT_EQ(made.size(), 1);
  EXPECT_EQ(made.rows(0), 4);
  EXPECT_EQ(made.graph(0).name, "net");
  EXPECT_THAT(made.run_times(0).runtime, Each(0));
  EXPECT_EQ(features_of(made, made.slate(0, all_rows(made, 0))), features_of(made, slate));
  const Rows turned{4, 1};
  const Slate rows = module.dataset.slate(0, turned);
  const Slate part = part_of_slate(module.dataset.slate(0, Rows{2, 4, 1}), 1, 2);
  EXPECT_EQ(part.configs, rows.configs);
  EXPECT_EQ(part.targets, rows.targets);
  EXPECT_EQ(part.states, rows.states);
}

}  // namespace
}  // namespace tpudist::test
