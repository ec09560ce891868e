#include "launch/sweep/slurm_submission.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "core/error.hpp"
#include "tests/launch/sweep/sweep_case.hpp"
#include "tests/support/paths.hpp"

namespace tpudist::test {
namespace {

void finish(const SweepFolder& sweep, std::size_t run) {
  RunResult result;
  result.id = sweep.record().runs[run].id;
  result.finished = true;
  write_result(sweep.result_file(sweep.record().runs[run]), result);
}

TEST(SlurmSubmission, SplitsLongArraysAndPutsTheEnsembleBehindThem) {
  const ExpandedSweep sweep("sweep: {seeds: 7}\n");
  SlurmOptions options;
  options.largest_array = 3;
  options.parallel = 2;
  options.gpus_per_node = 4;
  options.csv = "out.csv";
  options.options = {"--job-name=mine"};
  const auto jobs = slurm_jobs(sweep, options, "/bin/tpudist");
  ASSERT_EQ(jobs.size(), 4u);
  EXPECT_THAT(jobs[0].arguments, Contains("--array=0-2%2"));
  EXPECT_THAT(jobs[0].arguments, Contains("--gpus-per-node=4"));
  EXPECT_THAT(jobs[1].arguments, Contains("--array=0-2%2"));
  EXPECT_THAT(jobs[1].arguments,
              Contains("--export=ALL,TPUDIST=/bin/tpudist,TPUDIST_SWEEP_FIRST=3"));
  EXPECT_THAT(jobs[2].arguments, Contains("--array=0%2"));
  EXPECT_THAT(jobs[2].after, IsEmpty());
  for (const SlurmJob& job : jobs) {  // of two equal options sbatch takes the last
    const auto is_script = [](const std::string& word) { return word.ends_with(".sbatch"); };
    const auto script = std::ranges::find_if(job.arguments, is_script);
    ASSERT_NE(script, job.arguments.end());
    EXPECT_EQ(*std::prev(script), "--job-name=mine");
  }
  EXPECT_THAT(jobs[3].after, ElementsAre(0, 1, 2));
  EXPECT_THAT(jobs[3].arguments, Contains("--csv=out.csv"));
  EXPECT_THAT(command_line(jobs[3], {"11", "12"}),
              HasSubstr("sbatch --dependency=afterany:11:12 "));
}

TEST(SlurmSubmission, LeavesOutWhatIsFinished) {
  const ExpandedSweep sweep("sweep: {seeds: 5}\n");
  finish(sweep, 0);
  finish(sweep, 3);
  auto jobs = slurm_jobs(sweep, {}, "/bin/tpudist");
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_THAT(jobs[0].arguments, Contains("--array=0-1,3"));  // from run 1 on
  EXPECT_THAT(jobs[0].arguments, Contains(HasSubstr("TPUDIST_SWEEP_FIRST=1")));
  for (std::size_t run : {1, 2, 4}) finish(sweep, run);
  jobs = slurm_jobs(sweep, {}, "/bin/tpudist");
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].name, "ensemble");
}

TEST(SlurmSubmission, StagesWaitForEachOther) {
  const ExpandedSweep sweep(
      "sweep: {over: {optimizer.lr: [1e-3, 1e-2, 1e-1]}}\nhalving: {rungs: 2, keep: 3}\n"
      "choose: {by: valid, baseline: none}\n");
  const auto jobs = slurm_jobs(sweep, {}, "/bin/tpudist");
  ASSERT_EQ(jobs.size(), 4u);
  EXPECT_THAT(jobs[1].after, ElementsAre(0));
  EXPECT_THAT(jobs[1].arguments, Contains("--array=0"));
  EXPECT_THAT(jobs[1].arguments, Contains(HasSubstr("TPUDIST_SWEEP_FIRST=3")));
  EXPECT_THAT(jobs[2].after, ElementsAre(1));
  EXPECT_THAT(jobs[2].arguments, Contains("--array=0-2"));
  EXPECT_THAT(jobs[3].after, ElementsAre(0, 1, 2));
  EXPECT_THAT(jobs[1].arguments, Not(Contains("--go-on")));
  SlurmOptions go_on;
  go_on.go_on = true;
  EXPECT_EQ(slurm_jobs(sweep, go_on, "/bin/tpudist")[1].arguments.back(), "--go-on");
}

// Slurm replaces what follows a per cent sign in --output, and splits --export at commas.
TEST(SlurmSubmission, PathsReachSlurmAsTheyAre) {
  const SweepCase files;
  const auto sweep_file = files.sweep("sweep: {seeds: 1}\n");
  const SweepFolder blank = SweepFolder::expand(sweep_file, {}, files.path("a 'b'"));
  EXPECT_THAT(slurm_jobs(blank, {}, "/bin/tpudist")[0].arguments,
              Contains("--output=" + blank.path().string() + "/slurm/%A_%a.out"));
  EXPECT_THAT(message_of<ConfigError>([&] { slurm_jobs(blank, {}, "/opt/a,b/tpudist"); }),
              HasSubstr("Slurm takes no path with per cent signs, commas, backslashes"));
  for (const char* folder : {"pct 50%u", "a\\b", "a\nb"}) {
    const SweepFolder sweep = SweepFolder::expand(sweep_file, {}, files.path(folder));
    EXPECT_THAT(message_of<ConfigError>([&] { slurm_jobs(sweep, {}, "/bin/tpudist"); }),
                HasSubstr("rename the folders that have them, or expand the sweep into another one "
                          "(--dir)"));
  }
}

TEST(SlurmSubmission, OneJobMakesTheEnsembleOfEachVariant) {
  const SweepCase files;
  const std::string over = "sweep: {seeds: 2, over: {optimizer.lr: [1e-3, 1e-2]}}\n";
  const SweepFolder sweep = SweepFolder::expand(files.sweep(over), {}, files.path("sweep"));
  SlurmOptions options;
  options.csv = "out/all.csv";
  const auto jobs = slurm_jobs(sweep, options, "/bin/tpudist");
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[1].name, "ensemble of each variant");
  EXPECT_THAT(jobs[1].arguments, Contains("--export=ALL,TPUDIST=/bin/tpudist,TPUDIST_VARIANTS=2"));
  EXPECT_THAT(jobs[1].arguments, Contains("--csv=out/all-{}.csv"));
  EXPECT_THAT(jobs[1].after, ElementsAre(0));
  const SweepFolder chooses =
      SweepFolder::expand(files.sweep(over + "choose: {by: valid}\n"), {}, files.path("chooses"));
  EXPECT_EQ(slurm_jobs(chooses, options, "/bin/tpudist").back().name, "ensemble");
}

TEST(SlurmSubmission, SaysWhatSlurmKnowsOfTheJobs) {
  const ExpandedSweep sweep("sweep: {seeds: 2}\n");
  EXPECT_EQ(queue_text(sweep), "");  // nothing was submitted
  write_slurm_scripts(sweep);
  const std::string path = std::getenv("PATH"), script = sweep.path() / "slurm/sweep.sbatch";
  setenv("PATH", (sweep.path("").string() + ":" + path).c_str(), 1);
  const auto squeue = [&](const std::string& text) {
    const auto place = sweep.write("squeue", "#!/bin/sh\n" + text);
    std::filesystem::permissions(place, std::filesystem::perms::owner_all);
    return queue_text(sweep);
  };
  const std::string other = "echo 'Slurm job 13 RUNNING (None) /elsewhere/sweep.sbatch'\n";
  EXPECT_EQ(squeue(other + "echo 'Slurm job 12_[0-1] PENDING (Resources) " + script + " sweep'"),
            "\nSlurm job 12_[0-1] PENDING (Resources) " + script + " sweep\n");
  const std::string gone = squeue(other);
  EXPECT_THAT(gone, HasSubstr("lists no job of this sweep, but runs are left to train (at most 2): "
                              "see "));
  EXPECT_THAT(gone, HasSubstr("`tpudist sweep submit " + sweep.path().string() + "`"));
  EXPECT_EQ(squeue("exit 0"), gone);
  EXPECT_EQ(squeue("echo no controller; exit 1"),
            "\nSlurm's jobs are not known: `squeue` failed: no controller\n");
  for (std::size_t run : {0, 1}) finish(sweep, run);
  EXPECT_EQ(squeue("exit 0"), "");
  // The search has ended, and nobody has begun to confirm.
  const SweepFolder chooses =
      SweepFolder::expand(sweep.sweep("sweep: {seeds: 1}\nchoose: {by: valid, graphs: all}\n"), {},
                          sweep.path("chooses"));
  write_slurm_scripts(chooses);
  finish(chooses, 0);
  EXPECT_THAT(queue_text(chooses), HasSubstr("runs are left to train (at most 3): see "));
  setenv("PATH", path.c_str(), 1);
}

TEST(SlurmSubmission, QuotesWordsForTheShell) {
  SlurmJob job{"x", {"--comment=two words", "it's", "plain-1.0"}, {}};
  EXPECT_EQ(command_line(job, {}), "sbatch '--comment=two words' 'it'\\''s' plain-1.0");
}

TEST(SlurmSubmission, WritesTheScriptsOfTheRepository) {
  const ExpandedSweep sweep("sweep: {seeds: 1}\n");
  write_slurm_scripts(sweep);
  const auto content = [](const std::filesystem::path& path) {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  for (const char* name : {"sweep.sbatch", "ensemble.sbatch"}) {
    EXPECT_EQ(content(sweep.path() / "slurm" / name), content(source_folder() / "slurm" / name));
    EXPECT_THAT(content(sweep.path() / "slurm" / name), HasSubstr("srun --mpi=pmix"));
  }
}

}  // namespace
}  // namespace tpudist::test
