#include "tools/ferryrun/flag_table.h"

#include <algorithm>

namespace ferry::tools {
namespace {

constexpr FlagRow kTable[] = {
    {Flag::kHelp, "-h,-help,--help", "", "print this and exit"},
    {Flag::kVersion, "-version,--version", "", "print the version and exit"},
    {Flag::kCompletion, "--completion", "SHELL",
     "print what lets bash, zsh or fish complete this command, and exit"},
    {Flag::kRanks, "-n,-np,--np,--n,-c,--ranks", "N",
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
    {Flag::kRankFile, "-rf,-rankfile,--rankfile", "FILE",
     "run each rank where the file says, in lines of the form rank N=HOST slot=SOCKET:CORES"},
    {Flag::kMapBy, "-map-by,--map-by", "RULE",
     "how to deal out ranks: slot (the default) fills one node after the other, node takes them in "
     "turn, ppr:N:node puts N on each; inside a node socket, numa, l3cache, core and hwthread take "
     "these in turn, ppr:N:socket puts N on each; with :PE=N a rank has N cores"},
    {Flag::kRankBy, "-rank-by,--rank-by", "UNIT",
     "which rank runs where: node, socket, numa, l3cache, core or hwthread takes these in turn, "
     "slot goes on to the next node when one is full, fill to the next unit of --map-by"},
    {Flag::kPerNode, "-ppn,--ppn,-perhost,-N,-npernode,--npernode", "N",
     "deal out N ranks to each node in turn"},
    {Flag::kBindTo, "-bind-to,--bind-to", "WHAT",
     "where a rank may run: auto (its share of the cores, of it as many as OMP_NUM_THREADS says, "
     "the default), core, hwthread, l3cache, numa, socket, as core:N so many, none (anywhere)"},
    {Flag::kReportBindings, "-report-bindings,--report-bindings", "",
     "draw on which CPUs each rank may run"},
    {Flag::kVerbose, "-v,-verbose,--verbose", "", "say on which node each rank runs"},
    {Flag::kNodes, "--nodes", "N", "on how many nodes, each a private daemon on this machine (1)"},
    {Flag::kPrivate, "--private", "", "start private daemons in any case"},
    {Flag::kName, "--name,-J,--job-name", "NAME",
     "what ferryctl calls the job (the name of its program)"},
    {Flag::kLabel, "--label,-l,-prepend-rank,-tag-output,--tag-output", "",
     "put \"[rank] \" before each line of output"},
    {Flag::kNoLabel, "--no-label", "", "put nothing before it (the default)"},
    {Flag::kOutput, "-output,--output", "DIRECTORY",
     "write each rank's output to files of its own there, rank.N.out and rank.N.err, of which none "
     "may be there already"},
    {Flag::kReport, "--report", "[=FILE]",
     "say at the end where the ranks' time went, and what to change; into FILE.json or FILE.html, "
     "or as text"},
    {Flag::kTrace, "--trace", "FILE",
     "write a timeline of all ranks at the end, for ui.perfetto.dev: calls, waits, and arrows from "
     "sends to receives"},
    {Flag::kTraceLast, "--trace-last", "TIME", "of that only the last, as 10s or 500ms"},
    {Flag::kKeepGoing, "--keep-going", "", "let the others run on when a rank fails"},
    {Flag::kTimeout, "-timeout,--timeout", "SECONDS",
     "end the job after so long, with exit code 124"},
    {Flag::kGrace, "--grace-ms", "MS",
     "milliseconds between asking ranks to end and killing them (5000)"},
    {Flag::kDeadlockCheck, "--deadlock-check", "SECONDS",
     "how often to look for ranks that wait for each other in a circle, and to say so (5; 0: "
     "never)"},
    {Flag::kLaunchRadix, "--launch-radix", "N",
     "to how many hosts one host logs in: ferryrun to all of a job of so many, else to some of "
     "them, "
     "and these to others (64; 0: ferryrun logs in to all, and starts an srun for each)"},
    {Flag::kLaunchTimeout, "--launch-timeout", "SECONDS",
     "how long to wait for an agent on another host that srun or the like has not started yet (55 "
     "for the first; 10 after the last that came)"},
    {Flag::kTreeRadix, "--tree-radix", "N",
     "to how many others each daemon of a job of more than N + 1 nodes passes on news; the others "
     "meet when their ranks do (16; 0: all daemons meet at the start)"},
    {Flag::kErrorHandler, "-initial-errhandler,--initial-errhandler", "HANDLER",
     "what errors of MPI do at first: mpi_errors_are_fatal (the default), mpi_errors_abort, "
     "mpi_errors_return"},
    {Flag::kMemoryKinds, "-memory-alloc-kinds,--memory-alloc-kinds", "KIND,...",
     "kinds of memory that the programs will use, as MPI names them"},
    {Flag::kMalloc, "--malloc", "",
     "give ranks a malloc whose memory those of the node read without the kernel (--malloc=ferry)"},
    {Flag::kAbi, "--abi", "NAME",
     "on which library programs of MPICH (libmpi.so.12) and Open MPI (libmpi.so.40) run: auto on "
     "Ferry, mpich and openmpi also where their file does not say what they are, native on their "
     "own"},
    {Flag::kAllocation, "--allocation,-rmk", "SYSTEM",
     "whose hosts and slots to take where no hosts are named: auto (those of the job around it, "
     "the "
     "default), slurm, pbs, lsf, gridengine, flux, none"},
    {Flag::kLauncher, "--launcher", "HOW",
     "how to reach other hosts: ssh (the default, but for hosts of a batch system), srun, qrsh, "
     "blaunch, pbs_tmrsh, pbsdsh, flux, none"},
    {Flag::kRsh, "--rsh", "COMMAND",
     "instead, the command to which a host and what to run there are added"},
    {Flag::kNetwork, "--network", "NAME|ADDRESS/BITS",
     "the interface, or the network, by which hosts reach each other"},
    {Flag::kFerryd, "--ferryd", "PATH", "the daemon's program (else found beside ferryrun)"},
    {Flag::kIgnored,
     "-oversubscribe,--oversubscribe,-genvall,-allow-run-as-root,"
     "--allow-run-as-root",
     "", "taken for granted"},

    // ---- Of other launchers: the same in other words ----
    {Flag::kAlias, "--ntasks", "N", "-n %"},
    {Flag::kAlias, "--ntasks-per-node,--tasks-per-node,-grr", "N", "-ppn %"},
    {Flag::kAlias, "-pernode,--pernode", "", "--map-by ppr:1:node"},
    {Flag::kAlias, "-npersocket,--npersocket,--ntasks-per-socket", "N", "--map-by ppr:%:socket"},
    {Flag::kAlias, "--ntasks-per-core", "N", "--map-by ppr:%:core"},
    {Flag::kAlias, "-ppr,--ppr", "N:UNIT", "--map-by ppr:%"},
    {Flag::kAlias, "-bynode,--bynode,-rr", "", "--map-by node"},
    {Flag::kAlias, "-byslot,--byslot", "", "--map-by slot"},
    {Flag::kAlias, "-bycore,--bycore", "", "--map-by core"},
    {Flag::kAlias, "-bysocket,--bysocket", "", "--map-by socket"},
    {Flag::kAlias,
     "-cpus-per-rank,--cpus-per-rank,-cpus-per-proc,--cpus-per-proc,--cpus-per-task,"
     "--cores-per-task,-d,--depth",
     "N", "--map-by :PE=%"},
    {Flag::kAlias, "-use-hwthread-cpus,--use-hwthread-cpus", "", "--map-by :HWTCPUS"},
    {Flag::kAlias, "-nooversubscribe,--nooversubscribe,-no-oversubscribe,--no-oversubscribe", "",
     "--map-by :NOOVERSUBSCRIBE"},
    {Flag::kAlias, "-bind-to-core,--bind-to-core", "", "--bind-to core"},
    {Flag::kAlias, "-bind-to-socket,--bind-to-socket", "", "--bind-to socket"},
    {Flag::kAlias, "-bind-to-none,--bind-to-none", "", "--bind-to none"},
    {Flag::kAlias, "-envlist", "NAME,...", "-genvlist %"},
    {Flag::kAlias, "-w,--nodelist", "NAME,...", "-hosts %"},
    {Flag::kAlias, "--machinefile,-default-hostfile,--default-hostfile", "FILE", "-f %"},
    {Flag::kAlias, "-D,--chdir", "PATH", "-wdir %"},
    {Flag::kAlias, "-output-filename,--output-filename", "DIRECTORY", "--output %"},
    {Flag::kAlias, "-iface,--iface", "NAME", "--network %"},
    {Flag::kAlias, "-launcher-exec,--launcher-exec,-bootstrap-exec,--bootstrap-exec", "COMMAND",
     "--rsh %"},
    {Flag::kAlias,
     "-display-map,--display-map,-display-allocation,--display-allocation,-print-rank-map", "",
     "--verbose"},
    {Flag::kAlias,
     "-k,--no-kill,-disable-auto-cleanup,-continuous,--continuous,-enable-recovery,"
     "--enable-recovery",
     "", "--keep-going"},
    {Flag::kAlias, "-V,-info", "", "--version"},
    {Flag::kAlias,
     "-O,--overcommit,--overlap,--exclusive,-u,--unbuffered,--line-buffer,"
     "-q,--quiet,-envall,-print-all-exitcodes,-silent-abort,-disable-hostname-propagation,"
     "-enable-x,-disable-x,-noprefix,--noprefix",
     "[VALUE]", ""},
    {Flag::kAlias, "rmaps_base_mapping_policy,rmaps_default_mapping_policy", "RULE", "--map-by %"},
    {Flag::kAlias, "rmaps_base_ranking_policy,rmaps_default_ranking_policy", "UNIT", "--rank-by %"},
    {Flag::kAlias, "hwloc_base_binding_policy,hwloc_default_binding_policy", "WHAT", "--bind-to %"},
    {Flag::kAlias, "rmaps_base_cpus_per_proc,rmaps_base_cpus_per_rank", "N", "--map-by :PE=%"},

    // ---- The same for some values ----
    {Flag::kByValue, "-launcher,-bootstrap,--bootstrap", "HOW",
     "--launcher ssh, srun, qrsh, blaunch, pbs_tmrsh, pbsdsh, flux or none says how other hosts "
     "are "
     "reached, and --rsh names any command"},
    {Flag::kByValue, "-cpu-bind,--cpu-bind", "WHAT",
     "--bind-to core, hwthread, numa, socket or none says where ranks run, and taskset -c LIST "
     "ferryrun ... on which CPUs they all may"},
    {Flag::kByValue, "-m,--distribution", "RULE",
     "--map-by slot, node, socket or core says in which order ranks are dealt out, and -ppn N how "
     "many go to each node in turn"},
    {Flag::kByValue, "--hint", "WHAT",
     "a rank has whole cores in any case; --bind-to hwthread gives it a hardware thread"},
    {Flag::kByValue, "-display,--display", "WHAT",
     "--verbose says on which nodes ranks run, and --report-bindings on which CPUs"},
    {Flag::kByValue, "hwloc_base_report_bindings,hwloc_base_use_hwthreads_as_cpus", "1|0",
     "--report-bindings draws bindings, and --bind-to hwthread binds to hardware threads"},
    {Flag::kByValue, "-K,--kill-on-bad-exit", "[0|1]",
     "--keep-going lets the others run on when a rank fails"},
    {Flag::kByValue, "I_MPI_PERHOST", "N", "-ppn N deals out N ranks to each node in turn"},
    {Flag::kByValue, "I_MPI_PIN", "on|off", "--bind-to none binds no rank"},
    {Flag::kByValue, "I_MPI_PIN_DOMAIN", "WHAT",
     "--bind-to core, numa, socket or none, or hwthread:N, says where ranks run"},
    {Flag::kByValue, "I_MPI_PIN_ORDER", "ORDER",
     "--map-by socket or numa takes these in turn, and slot the next cores"},
    {Flag::kByValue, "I_MPI_PIN_CELL", "core|unit", "--bind-to core or hwthread says it"},
    {Flag::kByValue, "I_MPI_PIN_PROCESSOR_LIST", "LIST",
     "--bind-to core gives each rank one, and taskset -c LIST ferryrun ... says on which CPUs "
     "they all may run"},

    // ---- Without a meaning here ----
    {Flag::kForeign, "-mca,--mca,-gmca,--gmca,-prtemca,--prtemca,-pmixmca,--pmixmca", "NAME VALUE",
     "a setting of Open MPI's components"},
    {Flag::kForeign, "-am,--am,-tune,--tune,-personality,--personality", "NAME",
     "settings of another MPI library"},
    {Flag::kForeign, "--mpi", "NAME", "ferryrun itself brings its ranks together"},
    {Flag::kForeign, "-prefix,--prefix", "PATH",
     "on other hosts ferryrun is started under the path that it has here"},
    {Flag::kForeign, "-topolib,-demux,-order-nodes,-localhost,-nameserver", "NAME",
     "a setting of Hydra"},

    // ---- Another way ----
    {Flag::kRefused, "-outfile-pattern,-errfile-pattern,-o,-e,--error", "FILE",
     "--output DIRECTORY writes files for each rank"},
    {Flag::kRefused, "-hosts-group", "FILE", "-host, --map-by and --bind-to say where ranks run"},
    {Flag::kRefused, "-cpu-set,--cpu-set,-cpu-list,--cpu-list", "LIST",
     "taskset -c LIST ferryrun ... says on which CPUs ranks may run, and --bind-to how they share "
     "these"},
    {Flag::kRefused, "-binding", "RULES", "--bind-to and --map-by say where ranks run"},
    {Flag::kRefused, "-membind,-mem-bind,--mem-bind", "POLICY",
     "memory comes from the NUMA node of the rank that first writes to it; numactl is a program to "
     "run: ferryrun -n 2 numactl --interleave=all ./program"},
    {Flag::kRefused, "-s,-stdin,--stdin,-i,--input", "WHO",
     "rank 0 reads standard input (<FILE), and no other does"},
    {Flag::kRefused, "-gdb,-gdb-args,-xterm,--xterm,-debug,--debug,-debugger,--debugger,-tv,--tv",
     "", "a debugger is the program to run: ferryrun -n 2 xterm -e gdb ./program"},
    {Flag::kRefused, "-gtool,-gtoolfile,-aps,-mps,-trace,-check_mpi", "TOOL",
     "a tool is the program to run: ferryrun -n 1 TOOL ./program : -n 3 ./program"},
    {Flag::kRefused, "-configfile,--app,-app,-file,--multi-prog", "FILE",
     "several programs are written with \":\" between them"},
    {Flag::kRefused, "-soft", "NUMBERS", "-n N says how many ranks to start"},
    {Flag::kRefused, "-arch", "NAME", "-host names the hosts to run on"},
    {Flag::kRefused, "-path,--path", "PATH", "-x PATH=... says where programs are found"},
    {Flag::kRefused, "--export", "NAME,...",
     "all variables are passed on, and -x NAME=VALUE sets one"},
    {Flag::kRefused, "-genvnone,-envnone", "",
     "env -i PATH=\"$PATH\" ferryrun ... passes no other variable on"},
    {Flag::kRefused, "-nolocal,--nolocal,-skip-launch-node", "",
     "-hosts names the hosts to run on, without this one"},
    {Flag::kRefused, "--exclude", "NAME,...", "-hosts names the hosts to run on, without those"},
    {Flag::kRefused, "-usize,--usize", "N",
     "the universe has as many slots as the hosts: -hosts a:8,b:8"},
    {Flag::kRefused, "-timestamp-output,--timestamp-output,-prepend-timestamp", "",
     "ferryrun ... | ts puts the time before each line"},
    {Flag::kRefused, "-prepend-pattern,--prepend-pattern", "PATTERN",
     "--label puts the rank before each line"},
    {Flag::kRefused, "-merge-stderr-to-stdout,--merge-stderr-to-stdout", "",
     "2>&1 does that: ferryrun -n 2 ./program 2>&1"},
    {Flag::kRefused, "-preload-binary,--preload-binary,-preload-files,--preload-files,--bcast", "",
     "programs and files lie where all hosts see them, under one path"},
    {Flag::kRefused, "-do-not-launch,--do-not-launch,--test-only", "",
     "ferryrun -v --report-bindings ... true says where ranks would run"},
    {Flag::kRefused, "-display-topo,--display-topo", "", "lstopo draws the machine"},
    {Flag::kRefused, "-get-stack-traces,--get-stack-traces,--report-state-on-timeout", "",
     "--timeout SECONDS ends the job, and gdb -p PID shows where a rank is"},
    {Flag::kRefused, "-t,--time", "TIME", "--timeout SECONDS ends the job after so long"},
    {Flag::kRefused,
     "-p,--partition,-A,--account,--qos,-C,--constraint,--reservation,--mem,"
     "--mem-per-cpu,--threads-per-core,--cores-per-socket,--sockets-per-node",
     "NAME", "the batch system is asked for that: sbatch or salloc, and in its job ferryrun ..."},
    {Flag::kRefused,
     "-G,--gpus,--gres,--gpus-per-task,--gpus-per-node,--gpu-bind,-gpus-per-proc,--gpus-per-proc",
     "N",
     "every rank sees all GPUs of its node, is put near one by itself, and chooses it by its rank "
     "there (MPI_Comm_split_type)"},
};

// A value of a kByValue flag, and what it stands for. "N" is any number.
struct ValueRow {
  const char* flag;  // the first name in its row
  const char* value;
  const char* words;
};

constexpr ValueRow kValues[] = {
    {"-launcher", "ssh", "--launcher ssh"},
    {"-launcher", "rsh", "--rsh rsh"},
    {"-launcher", "slurm", "--launcher srun"},
    {"-launcher", "srun", "--launcher srun"},
    {"-launcher", "sge", "--launcher qrsh"},
    {"-launcher", "qrsh", "--launcher qrsh"},
    {"-launcher", "lsf", "--launcher blaunch"},
    {"-launcher", "blaunch", "--launcher blaunch"},
    {"-launcher", "pbs", "--launcher pbs_tmrsh"},
    {"-launcher", "pbs_tmrsh", "--launcher pbs_tmrsh"},
    {"-launcher", "pbsdsh", "--launcher pbsdsh"},
    {"-launcher", "flux", "--launcher flux"},
    {"-launcher", "fork", "--launcher none"},
    {"-launcher", "none", "--launcher none"},
    {"-cpu-bind", "none", "--bind-to none"},
    {"-cpu-bind", "no", "--bind-to none"},
    {"-cpu-bind", "core", "--bind-to core"},
    {"-cpu-bind", "cores", "--bind-to core"},
    {"-cpu-bind", "thread", "--bind-to hwthread"},
    {"-cpu-bind", "threads", "--bind-to hwthread"},
    {"-cpu-bind", "socket", "--bind-to socket"},
    {"-cpu-bind", "sockets", "--bind-to socket"},
    {"-cpu-bind", "numa", "--bind-to numa"},
    {"-cpu-bind", "ldoms", "--bind-to numa"},
    {"-cpu-bind", "depth", ""},  // with --depth
    {"-cpu-bind", "verbose", "--report-bindings"},
    {"-cpu-bind", "v", "--report-bindings"},
    {"-cpu-bind", "quiet", ""},
    {"-cpu-bind", "q", ""},
    {"-m", "block", "--map-by slot"},
    {"-m", "cyclic", "--map-by node"},
    {"-m", "block:block", "--map-by slot"},
    {"-m", "block:cyclic", "--map-by socket"},
    {"-m", "plane=N", "-ppn %"},
    {"--hint", "nomultithread", ""},
    {"--hint", "multithread", "--map-by :HWTCPUS"},
    {"-display", "map", "--verbose"},
    {"-display", "allocation", "--verbose"},
    {"-display", "alloc", "--verbose"},
    {"-display", "bind", "--report-bindings"},
    {"-display", "bindings", "--report-bindings"},
    {"-output", "tag", "--label"},
    {"-output", "tag-detailed", "--label"},
    {"-output", "rank", "--label"},
    {"hwloc_base_report_bindings", "1", "--report-bindings"},
    {"hwloc_base_report_bindings", "true", "--report-bindings"},
    {"hwloc_base_report_bindings", "0", ""},
    {"hwloc_base_report_bindings", "false", ""},
    {"-K", "0", "--keep-going"},
    {"-K", "1", ""},
    {"I_MPI_PERHOST", "N", "-ppn %"},
    {"I_MPI_PERHOST", "all", ""},
    {"I_MPI_PERHOST", "allcores", ""},
    {"I_MPI_PIN", "0", "--bind-to none"},
    {"I_MPI_PIN", "no", "--bind-to none"},
    {"I_MPI_PIN", "off", "--bind-to none"},
    {"I_MPI_PIN", "disable", "--bind-to none"},
    {"I_MPI_PIN", "1", ""},
    {"I_MPI_PIN", "yes", ""},
    {"I_MPI_PIN", "on", ""},
    {"I_MPI_PIN", "enable", ""},
    {"I_MPI_PIN_DOMAIN", "auto", ""},
    {"I_MPI_PIN_DOMAIN", "omp", ""},
    {"I_MPI_PIN_DOMAIN", "core", "--bind-to core"},
    {"I_MPI_PIN_DOMAIN", "numa", "--bind-to numa"},
    {"I_MPI_PIN_DOMAIN", "cache", "--bind-to l3cache"},
    {"I_MPI_PIN_DOMAIN", "cache3", "--bind-to l3cache"},
    {"I_MPI_PIN_DOMAIN", "socket", "--bind-to socket"},
    {"I_MPI_PIN_DOMAIN", "sock", "--bind-to socket"},
    {"I_MPI_PIN_DOMAIN", "node", "--bind-to none"},
    {"I_MPI_PIN_DOMAIN", "N", "--bind-to hwthread:%"},
    {"I_MPI_PIN_DOMAIN", "auto:compact", ""},
    {"I_MPI_PIN_DOMAIN", "omp:compact", ""},
    {"I_MPI_PIN_DOMAIN", "N:compact", "--bind-to hwthread:%"},
    {"I_MPI_PIN_ORDER", "compact", ""},
    {"I_MPI_PIN_ORDER", "range", ""},
    {"I_MPI_PIN_ORDER", "bunch", ""},
    {"I_MPI_PIN_ORDER", "spread", ""},
    {"I_MPI_PIN_ORDER", "scatter", "--map-by socket"},
    {"I_MPI_PIN_CELL", "core", ""},
    {"I_MPI_PIN_CELL", "unit", "--map-by :HWTCPUS"},
    {"I_MPI_PIN_PROCESSOR_LIST", "allcores", "--bind-to core"},
    {"I_MPI_PIN_PROCESSOR_LIST", "all", "--bind-to hwthread"},
};

constexpr char kUsage[] =
    "Runs a program as the ranks of a Ferry job:\n"
    "  ferryrun -n 4 [--nodes 2] [FLAGS] PROGRAM [ARGUMENTS]\n"
    "  ferryrun -n 1 FIRST [ARGUMENTS] : -n 3 SECOND [ARGUMENTS]\n"
    "\n"
    "Flags:\n";

constexpr char kFooter[] =
    "\n"
    "Flags of Open MPI's mpirun, MPICH's and Intel MPI's mpiexec and srun are taken for these, or "
    "refused\n"
    "with the flag to type.\n"
    "Every option of ferryd may be given as a flag too (ferryd --help lists them), for the "
    "private\n"
    "daemons and the ranks. Without a flag, the daemon that serves the run directory, or else\n"
    "/run/ferry, is used if there is one and the job has one node there; else private ones are\n"
    "started, and end with the job.\n"
    "The exit code is that of ferry_abort, MPI_Abort (1 for 0) or shmem_global_exit, else that of\n"
    "the first rank that failed, or 128 + the signal that killed it.\n";

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

bool IsOurs(const FlagRow& row) {
  return row.flag != Flag::kForeign && row.flag != Flag::kAlias && row.flag != Flag::kByValue &&
         row.flag != Flag::kRefused;
}

const char* MeaningOf(const FlagRow& row, std::string_view value) {
  const std::string_view flag = NamesOf(row).front();
  const size_t digit = value.find_first_of("0123456789");
  const size_t behind = value.find_first_not_of("0123456789", std::min(digit, value.size()));
  std::string any(value.substr(0, digit));
  if (digit != value.npos) {
    any += "N" + std::string(value.substr(std::min(behind, value.size())));
  }
  for (const ValueRow& known : kValues) {
    if (known.flag == flag && (known.value == value || known.value == any)) {
      return known.words;
    }
  }
  return nullptr;
}

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
                              .values = values.empty() || values.starts_with('[')
                                            ? 0
                                            : static_cast<int>(spaces) + 1});
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
      const std::string_view values = row.values;
      line += values.starts_with('[') ? "" : " ";
      line += values;
    }
    text += Wrapped(std::move(line), row.help);
  }
  return text + kFooter;
}

}  // namespace ferry::tools
