#include "launch/sweep/sweep_tables.hpp"

#include "launch/sweep/sweep_plan.hpp"
#include "tests/launch/sweep/sweep_case.hpp"

namespace tpudist::test {
namespace {

std::string outlook(const SweepCase& files, const std::string& text) {
  return outlook_text(plan_sweep(SweepFile::load(files.sweep(text))).record);
}

TEST(SweepOutlook, SaysWhatRunsAndFamiliesCanShow) {
  const SweepCase files;
  EXPECT_EQ(outlook(files, "sweep: {seeds: 3}\n"), "");  // nothing to compare
  EXPECT_THAT(outlook(files, "sweep: {over: {optimizer.lr: [1, 2]}}\n"),
              HasSubstr("1 training of each of 2 variants"));
  const std::string three = outlook(files, "sweep: {seeds: 3, over: {optimizer.lr: [1, 2, 3]}}\n");
  EXPECT_THAT(
      three,
      AllOf(HasSubstr("3 trainings of each of 3 variants: on these graphs a difference of 4.4 SD "
                      "between trainings is found in 8 of 10 sweeps (all 3 pairs at once)"),
            HasSubstr("validation graphs: ")));
}

}  // namespace
}  // namespace tpudist::test
