#include "tests/hostile/attacker.h"

#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "common/clock.h"

namespace ferry::hostile {

bool Attacker::Goes() const { return MonotonicNs() < end_ns; }

Attacker BecomeAttacker(int argc, char** argv) {
  if (argc < 7) {
    std::fprintf(stderr,
                 "usage: %s RUN_DIRECTORY OTHER_RUN_DIRECTORY VICTIM_JOB SEED SECONDS UID "
                 "[--without=NAME,...] [--proof]\n",
                 argv[0]);
    std::exit(2);
  }
  Attacker attacker;
  attacker.run_directory = argv[1];
  attacker.other_run_directory = argv[2];
  attacker.victim_job = argv[3];
  attacker.seed = std::strtoull(argv[4], nullptr, 10);
  attacker.end_ns = MonotonicNs() + 1'000'000'000 * std::strtoull(argv[5], nullptr, 10);
  const std::string user = argv[6];
  if (user != "-") {
    const auto uid = static_cast<uid_t>(std::strtoul(user.c_str(), nullptr, 10));
    if (setgroups(0, nullptr) != 0 || setresgid(uid, uid, uid) != 0 ||
        setresuid(uid, uid, uid) != 0) {
      std::perror("becoming another user");
      std::exit(2);
    }
    prctl(PR_SET_DUMPABLE, 1);  // it reads its own /proc
  }
  constexpr char kWithout[] = "--without=";
  for (int i = 7; i < argc; ++i) {
    const std::string option = argv[i];
    attacker.only_proof = attacker.only_proof || option == "--proof";
    if (option.starts_with(kWithout)) {
      std::istringstream names(option.substr(sizeof(kWithout) - 1));
      for (std::string name; std::getline(names, name, ',');) {
        attacker.without.insert(name);
      }
    }
  }
  signal(SIGPIPE, SIG_IGN);
  std::printf("%s: seed %llu\n", argv[0], static_cast<unsigned long long>(attacker.seed));
  std::fflush(stdout);
  return attacker;
}

DaemonIdentity IdentityOf(const std::string& run_directory) {
  std::ifstream file(run_directory + "/ferryd.json");
  const auto json = nlohmann::json::parse(file);
  return {json["control_address"], std::stoull(std::string(json["incarnation"]))};
}

}  // namespace ferry::hostile
