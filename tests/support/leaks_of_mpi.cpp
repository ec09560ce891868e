// Open MPI keeps what it allocates when it starts and ends until the process is gone, and unloads
// its plug-ins, which no report could name then. So LeakSanitizer looks away while MPI starts and
// ends, and the plug-ins stay loaded, so that lsan.supp can name those whose threads allocate
// later. The standard lets a program put functions of its own in front of those of MPI, which are
// also called PMPI_.

#include <dlfcn.h>
#include <link.h>
#include <mpi.h>
#include <sanitizer/lsan_interface.h>

#include <string>
#include <vector>

namespace {

int add_plug_in(dl_phdr_info* module, std::size_t, void* names) {
  const std::string name = module->dlpi_name;
  if (name.find("openmpi") != std::string::npos || name.find("pmix") != std::string::npos) {
    static_cast<std::vector<std::string>*>(names)->push_back(name);
  }
  return 0;
}

void keep_plug_ins() {
  std::vector<std::string> names;
  dl_iterate_phdr(add_plug_in, &names);
  for (const std::string& name : names) {
    ::dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  }
}

}  // namespace

extern "C" int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const __lsan::ScopedDisabler looks_away;
  const int code = PMPI_Init_thread(argc, argv, required, provided);
  keep_plug_ins();
  return code;
}

extern "C" int MPI_Finalize() {
  const __lsan::ScopedDisabler looks_away;
  return PMPI_Finalize();
}
