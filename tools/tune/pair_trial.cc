#include "tools/tune/pair_trial.h"

#include "tools/ferryrun/machine.h"
#include "tools/tune/measuring_job.h"

namespace ferry::tools {

std::optional<StatusOr<PairTimes>> TryPair(const std::vector<std::string>& options) {
  const std::string ferryrun = FindBeside({"ferryrun", "../ferryrun/ferryrun"});
  const std::string meter = FindBeside({"ferry-meter", "../libexec/ferry/ferry-meter",
                                        "../lib/ferry/ferry-meter", "../tune/ferry-meter"});
  const std::string of_debian = "../lib/" + std::string(kMultiarch) + "/libmpi_abi.so.1";
  const std::string library =
      FindBeside({"../lib/libmpi_abi.so.1", of_debian.c_str(), "../../mpi/libmpi_abi.so.1"});
  if (ferryrun.empty() || meter.empty() || library.empty()) {
    return std::nullopt;
  }
  // Here, whatever batch system this is in; and bounded.
  std::vector<std::string> command = {ferryrun,    "-n", "2",          "--allocation", "none",
                                      "--timeout", "20", "--grace-ms", "1000"};
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), {meter, library, "pair"});
  const StatusOr<std::string> text = RunMeasuringJob(command);
  return text.ok() ? ReadPair(*text) : StatusOr<PairTimes>(text.status());
}

}  // namespace ferry::tools
