// Options of the hostile programs: their identity, their duration, and the attacks that they leave
// out.
//
// Main thread.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "tests/hostile/dice.h"

namespace ferry::hostile {

struct Attacker {
  std::string run_directory;        // of the daemon it attacks
  std::string other_run_directory;  // of another node's daemon
  std::string victim_job;           // of another user
  uint64_t seed = 0;
  uint64_t end_ns = 0;
  std::set<std::string> without;  // attacks that it leaves out, by name
  bool only_proof = false;        // see hostile_peer

  bool Goes() const;
  bool Dares(const std::string& attack) const { return !without.contains(attack); }
};

// PROGRAM RUN_DIRECTORY OTHER_RUN_DIRECTORY VICTIM_JOB SEED SECONDS UID [--without=NAME,...]
// [--proof]: becomes that user, unless UID is "-", and says its seed. Ends the program if it is
// called otherwise.
Attacker BecomeAttacker(int argc, char** argv);

// host:port of the daemon that serves `run_directory`, and its incarnation.
struct DaemonIdentity {
  std::string control_address;
  uint64_t incarnation = 0;
};
DaemonIdentity IdentityOf(const std::string& run_directory);

}  // namespace ferry::hostile
