#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/launch/run_program.hpp"

namespace tpudist::test {
namespace {

Outcome run(const std::string& arguments) {
  return run_program(arguments + " 2>&1");
}

std::string experiment(const std::string& name) {
  return (source_folder() / "experiments" / name).string();
}

TEST(Program, EveryCommandHelpsWithAnExample) {
  for (const char* command :
       {"convert",     "inspect",      "verify",      "synth",          "train",
        "launch",      "evaluate",     "predict",     "ensemble",       "rank",        "search",
        "measure",     "tune",         "config show", "config systems", "config schema",
        "completion",  "sweep expand", "sweep run",   "sweep submit",   "sweep status",
        "sweep retry", "sweep collect"}) {
    const Outcome help = run(std::string(command) + " --help");
    EXPECT_EQ(help.exit_code, 0) << command;
    EXPECT_THAT(help.output, HasSubstr("Example:\n")) << command;
    EXPECT_THAT(help.output, HasSubstr(std::string("tpudist ") + command)) << command;
  }
  EXPECT_EQ(run("--help").exit_code, 0);
}

TEST(Program, VersionNamesTheLibrariesItIsBuiltWith) {
  EXPECT_THAT(output_of(run("--version")),
              AllOf(ContainsRegex("^tpudist [0-9]+\\.[0-9]+\\.[0-9]+\n"),
                    ContainsRegex("commit    ([0-9a-f]{12}(-modified)?|unknown)\n"),
                    ContainsRegex("compiler  [A-Za-z]+ [0-9.]+, [A-Z][A-Za-z]+\n"),
                    ContainsRegex("LibTorch  [0-9]+\\.[0-9]+\\.[0-9]+\n"),
                    ContainsRegex("MPI       [^\n]*[0-9]+\\.[0-9]+"),
                    ContainsRegex("HDF5      [0-9]+\\.[0-9]+\\.[0-9]+\n"),
                    ContainsRegex("CUDA      (yes|no|NCCL only)")));
}

TEST(Program, IsHeldToNarrowerKernelsByTpudistCpu) {
  const TempDir folder;
  const auto with = [&](const char* value) {
    return run_program("doctor --json 2>&1",
                       "cd " + folder.path().string() + " && TPUDIST_CPU=" + value + " ");
  };
  EXPECT_THAT(output_of(with("avx"), 2), HasSubstr("TPUDIST_CPU=avx: give avx2 or plain"));
#if defined(__x86_64__)
  EXPECT_THAT(with("plain").output, ContainsRegex("CPU vectors\": ?\"baseline"));
  if (__builtin_cpu_supports("avx2"))
    EXPECT_THAT(with("avx2").output, ContainsRegex("CPU vectors\": ?\"avx2"));
#endif
}

// Commands without mpirun would share Open MPI's folder there, and remove it from under each other.
TEST(Program, AloneItNeedsNoFolderForTemporaryFiles) {
  const TempDir folder;
  output_of(run_program("synth " + folder.path().string() + "/npz --preset tiny --quiet 2>&1",
                        "TMPDIR=/proc "));
}

TEST(Program, WrongUsageIsExitCode2) {
  for (const char* arguments : {"", "trian", "train", "train none.yaml", "evaluate .",
                                "convert --jobs 0 . x", "predict . --csv"}) {
    EXPECT_FALSE(output_of(run(arguments), 2).empty()) << arguments;
  }
}

// Each is one line that says what to do.
void expect_advice(const std::string& arguments, const std::string& advice,
                   const std::string& before = "") {
  const Outcome wrong = run_program(arguments + " 2>&1", before);
  EXPECT_EQ(wrong.exit_code, 2) << arguments << "\n" << wrong.output;
  EXPECT_THAT(wrong.output, StartsWith("tpudist: error: ")) << arguments;
  EXPECT_THAT(wrong.output, HasSubstr(advice)) << arguments;
  EXPECT_EQ(std::ranges::count(wrong.output, '\n'), 1) << wrong.output;
}

TEST(Program, AWrongWordIsOneLineThatSaysWhichWasMeant) {
  const std::string nlp = experiment("nlp.yaml");
  expect_advice("trian " + nlp, "did you mean `tpudist train`?");
  expect_advice("sweep colect x", "did you mean `tpudist sweep collect`?");
  expect_advice("frobnicate", "`tpudist --help` lists them");
  expect_advice(nlp, "did you mean `tpudist train " + nlp + "`?");
  expect_advice("train " + nlp + " --train.steps 20", "without dashes: train.steps=20");
  expect_advice("train " + nlp + " --train.steps=20", "without dashes: train.steps=20");
  expect_advice("train " + nlp + " --train.steps --resume", "without dashes: train.steps=VALUE");
  expect_advice("train " + nlp + " --steps 20", "e.g. train.steps=100");
  expect_advice("train " + nlp + " --run-dri x", "did you mean --run-dir?");
  expect_advice("inspect --colection tile:xla .", "did you mean --collection?");
  expect_advice("--quiet train " + nlp, "options stand after the command");
  expect_advice("train " + nlp + " -np 2", "`mpirun -np 2 tpudist train " + nlp + "`");
  expect_advice("train " + nlp + " -np=2 --resume", "-np 2 tpudist train " + nlp + " --resume`");
  expect_advice("convert a b -n 2", "tpudist convert has no option -n; `tpudist convert --help`");
  expect_advice("evaluate . --split vaild", "did you mean valid?");
  expect_advice("evaluate . --split test", "no run times: `tpudist predict` ranks it");
  expect_advice("evaluate . --device gpu", "did you mean cuda?");
  expect_advice("train " + nlp + " dist.device=gpu", "did you mean \"cuda\"?");
}

TEST(Program, AKeyGivenTwiceIsRefused) {
  const std::string nlp = experiment("nlp.yaml"), folds = experiment("sweeps/folds.yaml");
  for (const std::string& command : {"train " + nlp, "config show " + nlp})
    expect_advice(command + " train.steps=1 optimizer.lr=1 train.steps=2",
                  "the key train.steps is given twice");
  expect_advice("train " + nlp + " train.steps=5 trainer=x 'train={steps: 6}'",
                "the key train.steps is given twice, also in train; leave one out");
  expect_advice("sweep expand " + folds + " sweep.seeds=2 sweep.seeds=2",
                "sweep.seeds is given twice");
  expect_advice("weights import " + nlp + " a.safetensors name=a name=b --run-dir x",
                "the key name is given twice");
}

TEST(Program, HelpSaysTypesInWords) {
  const std::string help = run("evaluate --help").output;
  EXPECT_THAT(
      help, AllOf(ContainsRegex("--split train\\|valid\\|test +train or valid; `tpudist predict` "),
                  ContainsRegex("run folder +Folder of the run \\(required\\)\n"),
                  HasSubstr("--verbose ")));
  for (const char* jargon : {"TEXT", "INT", "FLOAT", "REQUIRED", "{"})
    EXPECT_THAT(help, Not(HasSubstr(jargon)));
}

TEST(Program, AnExperimentIsFoundByItsName) {
  const std::string here = "cd " + source_folder().string() + " && ";
  const auto show = [&](const std::string& name) {
    return run_program("config show " + name + " 2>&1", here).output;
  };
  const std::string whole = show("experiments/nlp.yaml");
  EXPECT_THAT(whole, HasSubstr("layout:nlp:random"));
  for (const char* name : {"nlp", "nlp.yaml", "experiments/nlp"})
    EXPECT_EQ(show(name), whole) << name;
  expect_advice("train nlpp", "did you mean experiments/nlp.yaml?", here);
  expect_advice("config show frobnicate", "; there are experiments/", here);
  expect_advice("train experiments", "experiments is a folder: give an experiment file", here);
  const TempDir elsewhere;
  expect_advice("train demo_fast", "there is no such experiment file here, in experiments/ or in ",
                "cd " + elsewhere.path().string() + " && ");
}

// Each command suggests what is of the kind that it takes.
TEST(Program, ANameIsNotThereAndANearOneIs) {
  const TempDir folder;
  const std::string here = "cd " + folder.path().string() + " && ";
  for (const char* run : {"runs/demo", "runs/other", "sweeps/four/runs/0f5f"})
    std::filesystem::create_directories(folder / run / "checkpoints");
  for (const char* run : {"runs/demo", "runs/other", "sweeps/four/runs/0f5f"})
    std::ofstream(folder / run / "config.yaml") << "name: demo\n";
  std::ofstream(folder / "sweeps/four/sweep.json") << "{}";
  for (const char* command : {"evaluate demo", "diff demo runs/other", "weights export demo x"})
    expect_advice(command, "did you mean runs/demo?", here);
  expect_advice("evaluate runs/demmo", "did you mean runs/demo?", here);
  expect_advice("predict runs/ohter --csv x", "did you mean runs/other?", here);
  expect_advice("evaluate runs", "give one of the runs in it, as runs/demo", here);
  expect_advice("evaluate sweeps/four", "give one of the runs in it, as sweeps/four/runs/0f5f",
                here);
  expect_advice("sweep status fuor", "did you mean sweeps/four?", here);
  expect_advice("sweep run sweeps/fuor", "did you mean sweeps/four?", here);
  expect_advice("sweep run sweeps/nothere",
                "there is no such sweep or sweep file; there are sweeps/four", here);
  expect_advice("report sweeps/for", "did you mean sweeps/four?", here);
  expect_advice("compare demo runs/other", "did you mean runs/demo?", here);
  expect_advice("inspect rnus", "did you mean runs?", here);
  expect_advice("train " + experiment("nlp.yaml") + " data.shards=rnus",
                "/runs?; give data.shards=", here);
}

TEST(Program, ASweepFileIsNoExperimentAndTheReverse) {
  const std::string sweep = experiment("sweeps/folds.yaml"), nlp = experiment("nlp.yaml");
  expect_advice("train " + sweep, "`tpudist sweep run " + sweep + "`");
  expect_advice("sweep expand " + nlp, "`tpudist train " + nlp + "`");
}

TEST(Program, RawNpzFilesAreNoShards) {
  const TempDir folder;
  const std::string npz = (folder / "npz").string();
  std::filesystem::create_directories(folder / "npz/tile/xla/train");
  std::ofstream(folder / "npz/tile/xla/train/a.npz") << "x";
  for (const std::string& command :
       {"inspect " + npz, "inspect " + npz + "/tile/xla", "inspect " + folder.path().string(),
        "train " + experiment("tile.yaml") + " data.shards=" + npz})
    expect_advice(command, "run `tpudist convert " + npz + " SHARDS` once");
  std::filesystem::create_directories(folder / "shards/tile/xla");
  std::ofstream(folder / "shards/tile/xla/manifest.json") << "{}";
  expect_advice("inspect " + (folder / "shards/tile/xla").string(),
                "give " + (folder / "shards").string() + ", which does");
}

TEST(Program, ConfigSystemsListsThePublishedOnes) {
  // The 2nd place's XLA network, as tests/models/network_config_test.cpp counts it.
  EXPECT_THAT(output_of(run("config systems " + experiment("systems"))),
              AllOf(HasSubstr("latenciaga_xla\n"), HasSubstr("parameters   265,093\n"),
                    HasSubstr("collections  layout:xla:default, layout:nlp:default\n"),
                    HasSubstr("score        0.736 ")));
  output_of(run("config systems " + experiment("sweeps")), 2);
  EXPECT_THAT(output_of(run("config systems nowhere"), 2), HasSubstr("nowhere"));
}

TEST(Program, ConfigSchemaPrintsThatOfEachKindOfFile) {
  EXPECT_THAT(run("config schema").output, HasSubstr("\"title\": \"tpudist experiment\""));
  EXPECT_THAT(run("config schema sweep").output, HasSubstr("\"title\": \"tpudist sweep\""));
  EXPECT_EQ(run("config schema runs").exit_code, 2);
}

TEST(Program, ConfigShowPrintsEveryValueAndTheHash) {
  EXPECT_THAT(output_of(run("config show " + experiment("nlp.yaml") + " train.steps=20")),
              AllOf(HasSubstr("data.collection"), HasSubstr("\nhash: ")));
  EXPECT_THAT(run("config show " + experiment("nlp.yaml") + " train.steps=20 --yaml").output,
              AllOf(StartsWith("name: nlp\n"), HasSubstr("steps: 20")));
}

TEST(Program, ConfigShowPrintsTheRunsOfASweepFile) {
  const std::string file = experiment("sweeps/folds.yaml");
  EXPECT_THAT(output_of(run("config show " + file + " sweep.seeds=2")),
              AllOf(HasSubstr("sweep folds over\n  "), HasSubstr("demo_folds.yaml\n"),
                    HasSubstr(", seed 2, member 4\n"), HasSubstr("list: 10 runs, from index 0\n"),
                    HasSubstr("`tpudist sweep run " + file + "`")));
  EXPECT_THAT(output_of(run("config show " + file + " --yaml")), HasSubstr("placement: split\n"));
  EXPECT_THAT(output_of(run("config show " + file + " sweep.sedes=2"), 2),
              AllOf(HasSubstr("sedes"), HasSubstr("seeds")));
}

TEST(Program, MistakesInAFileAreNamedWithTheirPlaceAllAtOnce) {
  const TempDir folder;
  std::ofstream(folder / "bad.yaml") << "name: bad\ndata: {shards: x, collection: layot:xla:random}"
                                        "\nbatch:\n  slats: 4\nmodel: {preset: latenciaga_xla}\n"
                                        "loss: {list_mle: {}}\ntrain: {steps: -1}\n";
  for (const char* command : {"config show ", "train "}) {
    const Outcome bad = run(command + (folder / "bad.yaml").string());
    EXPECT_EQ(bad.exit_code, 2) << command;
    EXPECT_THAT(bad.output,
                AllOf(HasSubstr("tpudist: error: "), HasSubstr("bad.yaml:4:3: ")));  // slats
    EXPECT_THAT(bad.output, AllOf(HasSubstr("slates"), HasSubstr("layout:xla:random"),
                                  HasSubstr("bad.yaml:7:")));
  }
}

TEST(Program, ATypoInAWellFormedCollectionIsFoundWhereShardsDoNotHoldIt) {
  const TempDir folder;
  std::filesystem::create_directories(folder / "shards/layout/xla/random");
  std::ofstream(folder / "shards/layout/xla/random/manifest.json") << "{}";
  const std::string shards = (folder / "shards").string();
  for (const std::string& command : {"train " + experiment("xla.yaml") +
                                         " data.collection=layout:xla:rndom data.shards=" + shards +
                                         " --run-dir " + (folder / "run").string(),
                                     "inspect " + shards + " --collection layout:xla:rndom"}) {
    const Outcome typo = run(command);
    EXPECT_EQ(typo.exit_code, 2) << command;
    EXPECT_THAT(typo.output,
                HasSubstr(shards + ": holds no shards of layout:xla:rndom (did you mean "
                                   "layout:xla:random"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
}

TEST(Program, MissingDataIsOneLineThatNamesTheFolder) {
  const TempDir folder;
  const Outcome missing =
      run("train " + experiment("nlp.yaml") + " data.shards=" + (folder / "none").string() +
          " --run-dir " + (folder / "run").string() + " --dry-run");
  EXPECT_TRUE(missing.exit_code == 2 || missing.exit_code == 3) << missing.exit_code;
  EXPECT_THAT(missing.output,
              AllOf(HasSubstr((folder / "none").string()), HasSubstr("tpudist: error: ")));
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
}

}  // namespace
}  // namespace tpudist::test
