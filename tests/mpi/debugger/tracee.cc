#include "tests/mpi/debugger/tracee.h"

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/support/registers.h"

namespace ferry::mpi_tests {
namespace {

using tests::Registers;

std::string FileText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The value of a symbol in one of the file's symbol tables; nothing: it has none that is defined.
std::optional<uint64_t> FindIn(const std::string& file, const std::string& symbol) {
  Elf64_Ehdr head;
  if (file.size() < sizeof(head) || std::memcmp(file.data(), ELFMAG, SELFMAG) != 0) {
    return std::nullopt;
  }
  std::memcpy(&head, file.data(), sizeof(head));
  const auto section = [&](size_t index) {
    Elf64_Shdr found{};
    const size_t at = head.e_shoff + index * sizeof(found);
    if (at + sizeof(found) <= file.size()) {
      std::memcpy(&found, file.data() + at, sizeof(found));
    }
    return found;
  };
  for (size_t i = 0; i < head.e_shnum; ++i) {
    const Elf64_Shdr table = section(i);
    if (table.sh_type != SHT_DYNSYM && table.sh_type != SHT_SYMTAB) {
      continue;
    }
    const Elf64_Shdr names = section(table.sh_link);
    for (size_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym entry;
      std::memcpy(&entry, file.data() + table.sh_offset + at, sizeof(entry));
      if (entry.st_shndx != SHN_UNDEF && symbol == file.data() + names.sh_offset + entry.st_name) {
        return entry.st_value;
      }
    }
  }
  return std::nullopt;
}

// Returns true for a program whose symbols are addresses already.
bool IsFixed(const std::string& file) {
  Elf64_Ehdr head;
  std::memcpy(&head, file.data(), sizeof(head));
  return head.e_type == ET_EXEC;
}

// Where each file of a process begins in its memory.
std::map<std::string, uint64_t> FilesOf(pid_t pid) {
  std::map<std::string, uint64_t> files;
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream fields(line);
    std::string range, rights, offset, device, node, path;
    fields >> range >> rights >> offset >> device >> node >> path;
    if (!path.empty() && path[0] == '/' && std::stoull(offset, nullptr, 16) == 0) {
      files.try_emplace(path, std::stoull(range, nullptr, 16));
    }
  }
  return files;
}

std::string MemoryOf(pid_t pid) { return "/proc/" + std::to_string(pid) + "/mem"; }

// From behind a breakpoint to its place. False: the process stands elsewhere.
bool StepBack(const Tracee& tracee, uint64_t breakpoint) {
  Registers registers;
  if (!registers.Read(tracee.pid()) ||
      registers.counter() != breakpoint + Registers::kBehindBreakpoint) {
    return false;
  }
  registers.set_counter(breakpoint);
  return registers.Write(tracee.pid());
}

}  // namespace

bool Tracee::Read(uint64_t address, void* to, size_t size_bytes) const {
  const int memory = open(MemoryOf(pid_).c_str(), O_RDONLY | O_CLOEXEC);
  const ssize_t got = pread(memory, to, size_bytes, static_cast<off_t>(address));
  close(memory);
  return got == static_cast<ssize_t>(size_bytes);
}

bool Tracee::Write(uint64_t address, const void* from, size_t size_bytes) const {
  const int memory = open(MemoryOf(pid_).c_str(), O_WRONLY | O_CLOEXEC);
  const ssize_t put = pwrite(memory, from, size_bytes, static_cast<off_t>(address));
  close(memory);
  return put == static_cast<ssize_t>(size_bytes);
}

std::string Tracee::Text(uint64_t address) const {
  std::string text;
  for (char next = Get<char>(address); next != '\0'; next = Get<char>(++address)) {
    text += next;
  }
  return text;
}

std::optional<uint64_t> Tracee::Find(const std::string& symbol) const {
  for (const auto& [path, base] : FilesOf(pid_)) {
    const std::string file = FileText(path);
    if (const std::optional<uint64_t> value = FindIn(file, symbol)) {
      return IsFixed(file) ? *value : base + *value;
    }
  }
  return std::nullopt;
}

void Tracee::Attach() const {
  int status = 0;
  ptrace(PTRACE_ATTACH, pid_, nullptr, nullptr);
  waitpid(pid_, &status, __WALL);
}

void Tracee::Detach() const { ptrace(PTRACE_DETACH, pid_, nullptr, nullptr); }

// A program that executes another one, or itself anew, is another program from then on: it stands,
// and the symbol is looked up again.
bool Tracee::RunTo(const std::string& symbol) const {
  int status = 0;
  ptrace(PTRACE_SINGLESTEP, pid_, nullptr, nullptr);  // it may stand there already
  waitpid(pid_, &status, __WALL);
  while (const std::optional<uint64_t> address = Find(symbol)) {
    const auto original = Get<Registers::Instruction>(*address);
    if (!Write(*address, &Registers::kBreakpoint, sizeof(original)) || !RunToTrap()) {
      return false;
    }
    if (StepBack(*this, *address)) {
      return Write(*address, &original, sizeof(original));
    }
  }
  return false;
}

bool Tracee::RunToTrap() const {
  for (long signal = 0; signal != SIGTRAP;) {
    ptrace(PTRACE_CONT, pid_, nullptr, signal);
    int status = 0;
    if (waitpid(pid_, &status, __WALL) != pid_ || !WIFSTOPPED(status)) {
      return false;
    }
    signal = WSTOPSIG(status);
  }
  return true;
}

Started StartTraced(const std::vector<std::string>& words) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return {};
  }
  std::vector<char*> arguments;
  for (const std::string& word : words) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(ends[1], STDOUT_FILENO);
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  close(ends[1]);
  int status = 0;
  waitpid(pid, &status, __WALL);
  return {pid, ends[0]};
}

}  // namespace ferry::mpi_tests
