// A command line of ferryctl. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/ferryctl/certs.h"
#include "tools/tune/collective_tune.h"
#include "tools/tune/kernel_tune.h"
#include "tools/tune/tune.h"

namespace ferry::tools {

struct CtlArguments {
  bool json = false;
  std::vector<std::string> options;  // of ferryd: "--name=value"
  std::string job;                   // the job that the command is about
  std::string rank;                  // JOB.RANK, or JOB

  // Counters: those that are 0, too. Sessions, why, top, queues: a line for each, however many.
  bool all = false;

  bool no_job = false;  // doctor: runs none

  // For drain and shutdown.
  bool no_wait = false;
  bool now = false;
  std::optional<uint32_t> after_s;

  // For top and watch.
  uint32_t interval_ms = 1000;
  uint32_t pictures = 0;  // 0: without end

  // For web.
  uint16_t port = 0;  // 0: any that is free
  bool open = false;
  std::string address_file;  // empty: the address goes to standard output

  // For links.
  bool take_back = false;
  bool for_now = false;  // the ranks may ask again
  std::optional<uint32_t> peer;

  // For trace and faults.
  std::string action;  // of trace: start, stop, or a job
  std::string last;    // of a job's trace: how much of its end is wanted
  std::string output;  // empty: standard output
  bool release = false;

  CertsPlan certs;

  // For tune.
  TunePlan tune;
  bool serve = false;
  bool tune_collectives = false;
  CollectivePlan collectives;
  bool tune_kernels = false;
  KernelPlan kernels;
  std::string tune_job;  // of collectives or kernels: flags of ferryrun
  std::optional<uint32_t> repetitions;
};

}  // namespace ferry::tools
