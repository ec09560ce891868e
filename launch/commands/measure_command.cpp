#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/log.hpp"
#include "launch/commands/commands.hpp"

namespace tpudist {
namespace {

// A random.py in the working folder is not Python's own.
constexpr const char* kStart = R"(import sys
sys.path = [path for path in sys.path if path]
try:
    from tpudist.measure import main
except ImportError as error:
    sys.exit(f"tpudist: error: {error} in {sys.executable}: pip install 'tpudist[measure]' there, or name "
             "another Python by TPUDIST_PYTHON")
except KeyboardInterrupt:
    sys.exit("tpudist: error: stopped")
sys.exit(main(sys.argv[1]))
)";

std::string variable_or(const char* name, const std::string& otherwise) {
  const char* const value = std::getenv(name);
  return value && *value ? value : otherwise;
}

// Replaces this process by python/tpudist/measure.py, since jax compiles and times programs.
void run_python(const nlohmann::json& arguments) {
  const std::filesystem::path folder =
      std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::string program = variable_or("TPUDIST_LAUNCHER", (folder / "tpudist").string());
  ::setenv("TPUDIST_PROGRAM", program.c_str(), 0);
  if (exists(folder / "python" / "tpudist")) {  // of a build
    const std::string others = variable_or("PYTHONPATH", "");
    const std::string paths = (folder / "python").string() + (others.empty() ? "" : ":") + others;
    ::setenv("PYTHONPATH", paths.c_str(), 1);
  }
  const std::string python = variable_or("TPUDIST_PYTHON", "python3");
  ::execlp(python.c_str(), python.c_str(), "-c", kStart, arguments.dump().c_str(),
           static_cast<char*>(nullptr));
  throw Error(ErrorKind::failed, fmt::format("cannot start {}: {}; name a Python by TPUDIST_PYTHON",
                                             python, std::strerror(errno)));
}

struct MeasureArguments {
  std::filesystem::path module, standard, out, inputs;
  std::string device, precision, budget, configs = "neighbours", apply;
  std::vector<std::string> runs;
  std::int64_t rounds = 0, calls = 6, propose = 10, most = 0;
  bool json = false;

  // The arguments of the function `measure` or `tune` in Python.
  nlohmann::json of(const char* command, nlohmann::json own) const {
    own.update({{"command", command},
                {"module", module.string()},
                {"default", standard.string()},
                {"out", out.string()},
                {"inputs", inputs.string()},
                {"device", device},
                {"budget", budget},
                {"precision", precision},
                {"calls", calls},
                {"show", json ? "json" : "text"},
                {"quiet", verbosity() == Verbosity::quiet}});
    return own;
  }
};

void add_common_options(Command command, MeasureArguments& to) {
  command.add_option("file", to.module, "HLO of a module before layout assignment")
      .required()
      .existing_file();
  command.add_option("--default", to.standard, "The same program after layout assignment")
      .required()
      .existing_file();
  command
      .add_option("--out", to.out,
                  "NAME.pb, a tuning file; NAME.npz and the journal NAME.jsonl lie beside it. The "
                  "same command goes on with them")
      .required();
  command
      .add_option("--precision", to.precision, "Measure rounds until all standard errors are below")
      .show_default();
  command.add_option("--budget", to.budget,
                     "The time to take: 90s, 10m or 2h. The compilation or round in work is "
                     "finished, and there is always one round");
  command.add_option("--device", to.device, "A device of jax (default: jax's choice)")
      .offers({"cpu", "gpu", "tpu"});
  command
      .add_option("--inputs", to.inputs,
                  "NPZ with the program's inputs by number: 0, 1, ... (default: random ones)")
      .existing_file();
  command
      .add_option("--calls", to.calls,
                  "Calls of each program to time in a round, in turns of three")
      .in_range(1, 1000)
      .show_default();
  command.add_flag("--json", to.json, "Print JSON");
}

}  // namespace

void add_measure_command(Command app) {
  auto arguments = std::make_shared<MeasureArguments>();
  arguments->precision = "0.5%";
  const Command command =
      app.add_command("measure", "Measure the configurations of a module on this machine");
  command.footer(
      "Compiles the module with each configuration's layouts by jax, compares the results with the "
      "default's, and times\nall in shuffled rounds. May be stopped at any time.\n\n"
      "Example:\n  tpudist measure before.hlo.pb --default after.hlo.pb --configs found.json --out "
      "measured.pb");
  add_common_options(command, *arguments);
  command
      .add_option("--configs", arguments->configs,
                  "Beside the default: neighbours, random:N[:SEED], or a file of `rank --json` or "
                  "`search --json`")
      .offers({"neighbours", "random:N", "FILE"})
      .show_default();
  command.add_option("--rounds", arguments->rounds, "How many rounds, in place of --precision")
      .not_negative();
  command.run([own = arguments] {
    run_python(own->of("measure", {{"configs", own->configs}, {"rounds", own->rounds}}));
  });
}

void add_tune_command(Command app) {
  auto arguments = std::make_shared<MeasureArguments>();
  arguments->precision = "1%";
  const Command command = app.add_command("tune", "Find fast layouts of a module on this machine");
  command.footer(
      "Measures a batch of configurations at a time, until five batches found nothing faster. "
      "With "
      "--run the model proposes them and is corrected by their times. Without --run they are "
      "children of the fastest: crossed, with one group of operations changed. Then compares the "
      "best with the default in new rounds.\n\n"
      "Example:\n  tpudist tune before.hlo.pb --default after.hlo.pb --run runs/xla-1 --out "
      "tuned.pb --budget 10m");
  add_common_options(command, *arguments);
  command.add_option("--run", arguments->runs,
                     "Folders of runs, or SWEEP:N; all their members search together");
  command.add_option("--propose", arguments->propose, "Configurations to measure at a time")
      .in_range(1, 1000)
      .show_default();
  command.add_option("--most", arguments->most, "Configurations to measure at most; 0: any number")
      .not_negative();
  command
      .add_option("--apply", arguments->apply,
                  "Print only the best, to apply: jax (Python) or text (LayoutConfig)")
      .one_of({"jax", "text"});
  command.run([own = arguments] {
    run_python(own->of("tune", {{"runs", own->runs},
                                {"propose", own->propose},
                                {"most", own->most},
                                {"apply", own->apply}}));
  });
}

}  // namespace tpudist
