#include "client/mpi/runtime/start_facts.h"

#include <sys/utsname.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "client/mpi/runtime/process.h"

namespace ferry::mpi {
namespace {

// The command and its arguments as the system knows them: programs may call MPI_Init without.
void DescribeOwnCommand(StartFacts* facts) {
  std::ifstream file("/proc/self/cmdline");
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) {
    words.push_back(word);
  }
  std::vector<char*> arguments;
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  DescribeCommand(static_cast<int>(arguments.size()), arguments.data(), facts);
}

}  // namespace

StartFacts FactsOfStart() {
  StartFacts facts;
  std::error_code ignored;
  facts.wdir = std::filesystem::current_path(ignored).string();
  if (utsname system{}; uname(&system) == 0) {
    facts.host = system.nodename;
    facts.arch = system.machine;
  }
  if (Process::phase() == Phase::kRunning) {
    facts.memory_alloc_kinds = front_end->options().memory_alloc_kinds;
    const uint64_t told = front_end->options().app_size;
    facts.max_processes = told != 0 ? static_cast<int>(told) : Process::world().size();
  }
  return facts;
}

const MemoryKinds& ServedMemoryKinds() {
  static const MemoryKinds& kinds = *new MemoryKinds(front_end->options().gpu_backend);
  return kinds;
}

Ref<Info> MakeEnvironment() {
  StartFacts facts = FactsOfStart();
  DescribeOwnCommand(&facts);
  return MakeRef<Info>(DescribeStart(facts));
}

}  // namespace ferry::mpi
