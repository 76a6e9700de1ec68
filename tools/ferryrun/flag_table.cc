#include "tools/ferryrun/flag_table.h"

#include <algorithm>

namespace ferry::tools {
namespace {

constexpr FlagRow kTable[] = {
    {Flag::kHelp, "-h,-help,--help", "", "print this and exit"},
    {Flag::kVersion, "-version,--version", "", "print the version and exit"},
    {Flag::kCompletion, "--completion", "SHELL",
     "print what lets bash, zsh or fish complete this command, and exit"},
    {Flag::kRanks, "-n,-np,--np,-c,--ranks", "N",
     "how many ranks to start (1; in the job of a batch system one for each of its slots)"},
    {Flag::kExport, "-x", "NAME[=VALUE]",
     "set a variable for this program's ranks, or pass it on as it is here"},
    {Flag::kVariable, "-env", "NAME VALUE", "set a variable for this program's ranks"},
    {Flag::kVariableForAll, "-genv", "NAME VALUE", "set a variable for all ranks"},
    {Flag::kExportsForAll, "-genvlist", "NAME,...",
     "pass these variables on to all ranks as they are here"},
    {Flag::kDirectory, "-wdir,--wdir,-wd", "PATH", "run this program's ranks in that directory"},
    {Flag::kHost, "-host,--host,-H", "NAME[:SLOTS],...", "run this program on these hosts only"},
    {Flag::kHosts, "-hosts", "NAME[:SLOTS],...", "run the job on these hosts"},
    {Flag::kHostFile, "-f,-hostfile,--hostfile,-machinefile", "FILE",
     "run the job on the hosts that the file names, as NAME slots=N or NAME:N"},
    {Flag::kMapBy, "-map-by,--map-by", "RULE",
     "how to deal out ranks: slot (the default) fills one node after the other, node takes them in "
     "turn, ppr:N:node puts N on each"},
    {Flag::kPerNode, "-ppn,-perhost,-N,-npernode,--npernode", "N",
     "deal out N ranks to each node in turn"},
    {Flag::kBindTo, "-bind-to,--bind-to", "WHAT",
     "where a rank may run: auto (its share of the cores, the default), core, socket, none "
     "(anywhere)"},
    {Flag::kReportBindings, "-report-bindings,--report-bindings", "",
     "say on which CPUs each rank may run"},
    {Flag::kVerbose, "-v,-verbose,--verbose", "", "say on which node each rank runs"},
    {Flag::kNodes, "--nodes", "N", "on how many nodes, each a private daemon on this machine (1)"},
    {Flag::kPrivate, "--private", "", "start private daemons in any case"},
    {Flag::kLabel, "--label,-l,-prepend-rank,-tag-output,--tag-output", "",
     "put \"[rank] \" before each line of output"},
    {Flag::kNoLabel, "--no-label", "", "put nothing before it (the default)"},
    {Flag::kKeepGoing, "--keep-going", "", "let the others run on when a rank fails"},
    {Flag::kTimeout, "-timeout,--timeout", "SECONDS",
     "end the job after so long, with exit code 124"},
    {Flag::kGrace, "--grace-ms", "MS",
     "milliseconds between asking ranks to end and killing them (5000)"},
    {Flag::kErrorHandler, "-initial-errhandler,--initial-errhandler", "HANDLER",
     "what errors of MPI do at first: mpi_errors_are_fatal (the default), mpi_errors_abort, "
     "mpi_errors_return"},
    {Flag::kMemoryKinds, "-memory-alloc-kinds,--memory-alloc-kinds", "KIND,...",
     "kinds of memory that the programs will use, as MPI names them"},
    {Flag::kMalloc, "--malloc", "",
     "give ranks a malloc whose memory those of the node read without the kernel (--malloc=ferry)"},
    {Flag::kAllocation, "--allocation,-rmk", "SYSTEM",
     "whose hosts and slots to take where no hosts are named: auto (those of the job around it, "
     "the "
     "default), slurm, pbs, lsf, gridengine, flux, none"},
    {Flag::kLauncher, "--launcher", "HOW",
     "how to reach other hosts: ssh (the default, but for hosts that Slurm has given), srun, none"},
    {Flag::kRsh, "--rsh", "COMMAND",
     "instead, the command to which a host and what to run there are added"},
    {Flag::kNetwork, "--network", "NAME|ADDRESS/BITS",
     "the interface, or the network, by which hosts reach each other"},
    {Flag::kFerryd, "--ferryd", "PATH", "the daemon's program (else found beside ferryrun)"},
    {Flag::kIgnored,
     "-oversubscribe,--oversubscribe,-genvall,-allow-run-as-root,"
     "--allow-run-as-root",
     "", "taken for granted"},
    {Flag::kForeign, "-mca,--mca,-gmca,--gmca,-prtemca,--prtemca,-pmixmca,--pmixmca", "NAME VALUE",
     "a setting of Open MPI's components"},
    {Flag::kRefused, "-outfile-pattern,-output-filename,--output-filename", "FILE",
     "ferryrun -n 2 sh -c './program >out.$FERRY_RANK' writes a file for each rank"},
    {Flag::kRefused, "-rf,-rankfile,--rankfile", "FILE",
     "-host, --map-by and --bind-to say where ranks run"},
    {Flag::kRefused, "-s,-stdin,--stdin", "WHO", "rank 0 reads standard input, and no other does"},
    {Flag::kRefused, "-gdb,-xterm,--xterm,-debug,--debug", "",
     "a debugger is the program to run: ferryrun -n 2 xterm -e gdb ./program"},
    {Flag::kRefused, "-configfile,--app,-app", "FILE",
     "several programs are written with \":\" between them"},
};

// Returns true if --help should list the flag.
bool IsOurs(const FlagRow& row) { return row.flag != Flag::kForeign && row.flag != Flag::kRefused; }

constexpr char kUsage[] =
    "Runs a program as the ranks of a Ferry job:\n"
    "  ferryrun -n 4 [--nodes 2] [FLAGS] PROGRAM [ARGUMENTS]\n"
    "  ferryrun -n 1 FIRST [ARGUMENTS] : -n 3 SECOND [ARGUMENTS]\n"
    "\n"
    "Flags:\n";

constexpr char kFooter[] =
    "\n"
    "Every option of ferryd may be given as a flag too (ferryd --help lists them), for the "
    "private\n"
    "daemons and the ranks. Without a flag, the daemon that serves the run directory, or else\n"
    "/run/ferry, is used if there is one and the job has one node there; else private ones are\n"
    "started, and end with the job.\n"
    "The exit code is that of ferry_abort, MPI_Abort or shmem_global_exit, else that of the first\n"
    "rank that failed, or 128 + the signal that killed it.\n";

constexpr size_t kHelpColumn = 30;
constexpr size_t kLineBytes = 100;

// `text` from kHelpColumn on, after `line`.
std::string Wrapped(std::string line, std::string_view text) {
  std::string lines;
  if (line.size() + 2 > kHelpColumn) {
    lines = line + "\n";
    line.clear();
  }
  line.resize(kHelpColumn, ' ');
  bool first = true;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (line.size() + 1 + end > kLineBytes) {
      lines += line + "\n";
      line.assign(kHelpColumn, ' ');
      first = true;
    }
    line.append(first ? "" : " ").append(text.substr(0, end));
    first = false;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines + line + "\n";
}

}  // namespace

std::span<const FlagRow> FlagTable() { return kTable; }

std::vector<std::string_view> NamesOf(const FlagRow& row) {
  std::vector<std::string_view> names;
  std::string_view rest = row.names;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(','), rest.size());
    names.push_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return names;
}

const FlagRow* FindFlag(std::string_view name) {
  for (const FlagRow& row : kTable) {
    const std::vector<std::string_view> names = NamesOf(row);
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      return &row;
    }
  }
  return nullptr;
}

CommandLine DescribeCommandLine() {
  CommandLine line{.tool = "ferryrun", .flags = {}, .commands = {}};
  for (const FlagRow& row : kTable) {
    const std::string_view values = row.values;
    const auto spaces = std::count(values.begin(), values.end(), ' ');
    for (const std::string_view name : NamesOf(row)) {
      if (IsOurs(row)) {
        line.flags.push_back({.name = std::string(name),
                              .help = row.help,
                              .values = values.empty() ? 0 : static_cast<int>(spaces) + 1});
      }
    }
  }
  return line;
}

std::string HelpText() {
  std::string text = kUsage;
  for (const FlagRow& row : kTable) {
    if (!IsOurs(row)) {
      continue;
    }
    std::string line = std::string("  ") + row.names;
    if (*row.values != '\0') {
      line += std::string(" ") + row.values;
    }
    text += Wrapped(std::move(line), row.help);
  }
  return text + kFooter;
}

std::string FlagNames() {
  std::string text;
  for (const FlagRow& row : kTable) {
    if (IsOurs(row)) {
      text += (text.empty() ? "" : ", ") + std::string(row.names);
    }
  }
  for (size_t comma = text.find(','); comma != text.npos; comma = text.find(',', comma + 2)) {
    if (text[comma + 1] != ' ') {
      text.insert(comma + 1, " ");
    }
  }
  return text;
}

}  // namespace ferry::tools
