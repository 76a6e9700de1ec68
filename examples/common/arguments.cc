#include "examples/common/arguments.h"

#include <getopt.h>

#include <charconv>
#include <cstdio>
#include <system_error>

namespace examples {
namespace {

constexpr int kMaxPoints = 1 << 20;

constexpr char kHelp[] =
    "  --size N[xN...]   points along each axis, the fixed edge included; one number: all alike "
    "(%s)\n"
    "  --iterations N    steps of Jacobi's method (100)\n"
    "  --memory KIND     where the points are: device, heap (host memory of Ferry's) or private "
    "(device)\n"
    "  --naive           copy faces through host memory by hand, instead of giving them to Ferry\n"
    "  --compare         run both ways and print how much longer the naive one takes\n"
    "  --check           compare with a serial solve even when that takes long; --no-check: "
    "never\n";
constexpr char kThreadsHelp[] =
    "  --threads N       OpenMP threads of each rank (its node's cores over its node's ranks)\n";
constexpr char kGridHelp[] =
    "  --grid NxNxN      ranks along each axis (those that exchange the least)\n";

constexpr option kFlags[] = {{"size", required_argument, nullptr, 's'},
                             {"iterations", required_argument, nullptr, 'n'},
                             {"memory", required_argument, nullptr, 'm'},
                             {"naive", no_argument, nullptr, 'v'},
                             {"compare", no_argument, nullptr, 'b'},
                             {"check", no_argument, nullptr, 'c'},
                             {"no-check", no_argument, nullptr, 'u'},
                             {"grid", required_argument, nullptr, 'g'},
                             {"threads", required_argument, nullptr, 't'},
                             {"help", no_argument, nullptr, 'h'},
                             {nullptr, 0, nullptr, 0}};

// "66", which stands for all axes, or "66x66x66"; axes beyond `axes` get 1.
bool ReadTriple(std::string_view text, int axes, int least, Triple* triple) {
  *triple = {1, 1, 1};
  for (int axis = 0; axis < axes; ++axis) {
    const size_t end = text.find('x');
    const bool last = end == std::string_view::npos;
    int& number = (*triple)[static_cast<size_t>(axis)];
    if (!ReadCount(text.substr(0, end), least, &number) || number > kMaxPoints) {
      return false;
    }
    if (last) {
      for (int other = 1; axis == 0 && other < axes; ++other) {
        (*triple)[static_cast<size_t>(other)] = number;
      }
      return axis == 0 || axis == axes - 1;
    }
    text.remove_prefix(end + 1);
  }
  return false;  // more numbers than axes
}

// The error in the flag, to follow its name and value; empty if there is none.
std::string Take(int flag, const StencilProgram& program, StencilArguments* arguments) {
  const std::string axes = std::to_string(program.axes);
  switch (flag) {
    case 's':
      return ReadTriple(optarg, program.axes, 3, &arguments->points)
                 ? ""
                 : "must be one number, or " + axes +
                       " with an x between them, from 3 (a point and " +
                       "the fixed edge on either side) to " + std::to_string(kMaxPoints);
    case 'n':
      return ReadCount(optarg, 0, &arguments->iterations) ? "" : "not a number from 0";
    case 'm': {
      const auto memory = MemoryNamed(optarg);
      arguments->memory = memory.value_or(Memory::kDevice);
      return memory ? "" : "must be device, heap or private";
    }
    case 't':
      return !program.has_threads                        ? "this program takes no threads"
             : ReadCount(optarg, 1, &arguments->threads) ? ""
                                                         : "not a number from 1";
    case 'g':
      arguments->grid.emplace();
      return program.has_threads ? "this program divides rows only, and takes no grid"
             : std::string_view(optarg).find('x') != std::string_view::npos &&
                     ReadTriple(optarg, program.axes, 1, &*arguments->grid)
                 ? ""
                 : "must be " + axes + " numbers from 1 with an x between them";
    case 'c':
    case 'u':
      arguments->check = flag == 'c';
      return "";
    default: {
      const Mode mode = flag == 'v' ? Mode::kNaive : Mode::kCompared;
      if (arguments->mode != Mode::kDirect && arguments->mode != mode) {
        return "--naive and --compare exclude each other; --compare runs both ways";
      }
      arguments->mode = mode;
      return "";
    }
  }
}

void PrintHelp(const StencilProgram& program) {
  std::printf("%s: %s\n  ferryrun -n 4 [--nodes 2] %s [FLAGS]\n", program.name, program.summary,
              program.name);
  std::printf(kHelp, TimesText(program.points, program.axes).c_str());
  std::fputs(program.has_threads ? kThreadsHelp : kGridHelp, stdout);
}

}  // namespace

bool ReadCount(std::string_view text, int least, int* count) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), *count);
  return error == std::errc() && stop == text.data() + text.size() && *count >= least;
}

bool ParseArguments(int argc, char** argv, const StencilProgram& program, bool speak,
                    StencilArguments* arguments, int* exit_code) {
  opterr = speak ? 1 : 0;
  optind = 1;
  *exit_code = 2;
  arguments->points = program.points;
  int index = 0;
  for (int flag = 0; (flag = getopt_long(argc, argv, "", kFlags, &index)) != -1;) {
    if (flag == '?') {
      return false;  // getopt has said so
    }
    if (flag == 'h') {
      if (speak) {
        PrintHelp(program);
      }
      *exit_code = 0;
      return false;
    }
    const std::string mistake = Take(flag, program, arguments);
    if (!mistake.empty()) {
      if (speak) {
        std::fprintf(stderr, "%s: --%s%s%s: %s\n", program.name, kFlags[index].name,
                     optarg == nullptr ? "" : " ", optarg == nullptr ? "" : optarg,
                     mistake.c_str());
      }
      return false;
    }
  }
  if (optind < argc) {
    if (speak) {
      std::fprintf(stderr, "%s: unexpected argument %s (--help lists the flags)\n", program.name,
                   argv[optind]);
    }
    return false;
  }
  return true;
}

}  // namespace examples
