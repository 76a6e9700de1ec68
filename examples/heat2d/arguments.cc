#include "examples/heat2d/arguments.h"

#include <getopt.h>

#include <cstdio>

#include "examples/common/arguments.h"

namespace heat2d {
namespace {

constexpr char kHelp[] =
    "heat2d: lets the heat of a picture spread, on all ranks of a Ferry job.\n"
    "  ferryrun -n 4 [--nodes 2] heat2d [FLAGS]\n"
    "  --image FILE      grey PNG or PGM: the temperature at the start; its edge stays as it is\n"
    "                    (examples/heat2d/ferry.png)\n"
    "  --iterations N    steps of Jacobi's method (200)\n"
    "  --output FILE     where the result goes, as PNG (heat2d.png)\n"
    "  --no-check        do not compare with a serial solve\n";

}  // namespace

bool ParseArguments(int argc, char** argv, bool speak, Arguments* arguments, int* exit_code) {
  constexpr option kFlags[] = {
      {"image", required_argument, nullptr, 'i'},  {"iterations", required_argument, nullptr, 'n'},
      {"output", required_argument, nullptr, 'o'}, {"no-check", no_argument, nullptr, 'c'},
      {"help", no_argument, nullptr, 'h'},         {nullptr, 0, nullptr, 0}};
  opterr = speak ? 1 : 0;
  *exit_code = 2;
  for (int flag = 0; (flag = getopt_long(argc, argv, "", kFlags, nullptr)) != -1;) {
    switch (flag) {
      case 'i':
        arguments->image = optarg;
        break;
      case 'n':
        if (!examples::ReadCount(optarg, 0, &arguments->iterations)) {
          if (speak) {
            std::fprintf(stderr, "heat2d: --iterations %s: not a number from 0\n", optarg);
          }
          return false;
        }
        break;
      case 'o':
        arguments->output = optarg;
        break;
      case 'c':
        arguments->check = false;
        break;
      case 'h':
        if (speak) {
          std::fputs(kHelp, stdout);
        }
        *exit_code = 0;
        return false;
      default:
        return false;
    }
  }
  if (optind < argc) {
    if (speak) {
      std::fprintf(stderr, "heat2d: unexpected argument %s (--help lists the flags)\n",
                   argv[optind]);
    }
    return false;
  }
  return true;
}

}  // namespace heat2d
