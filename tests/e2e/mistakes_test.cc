// The answer to each mistake in a program's calls; the program itself (ranks/mistakes.cc) checks
// that the messages after it are whole. And what a rank that cannot be served is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <vector>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

std::vector<testing::Matcher<std::string>> WhatIsTold() {
  const std::string no_rank = " is not between 0 and 1";
  const std::string no_tag = " is not between 0 and 1073741823";
  const std::string in_use =
      ": 22 invalid buffer: a request that is not complete uses this memory; wait for it first";
  const std::string not_allocated =
      ": 22 invalid buffer: ferry_free was given an address that ferry_alloc did not return, or "
      "that is free already";
  const std::string overlap =
      ": 20 already exists: the range overlaps one that is registered already; deregister that "
      "first";
  const std::string no_handle =
      ": 19 not found: the handle names no offloaded send buffer: deregistered before, or not what "
      "ferry_offload_register returned?";
  const std::string truncated =
      ": 11 message truncated: the message is longer than the receive buffer, which holds its "
      "first bytes";
  const std::string not_there =
      ": 22 invalid buffer: memory of this or the other end of the message is not there: was it "
      "freed or unmapped before the request was complete?";
  return {
      "second ferry_init: 4 Ferry is already initialised: ferry_init was called before in this "
      "process",
      "send to a rank beyond the last: 9 invalid rank: rank 2" + no_rank,
      "send to any rank: 9 invalid rank: rank -1" + no_rank,
      "receive from a negative rank: 9 invalid rank: rank -2" + no_rank + ", nor FERRY_ANY_SOURCE",
      "negative tag: 10 invalid tag: tag -1" + no_tag,
      "tag beyond the largest: 10 invalid tag: tag 1073741824" + no_tag,
      "receive of a negative tag: 10 invalid tag: tag -2" + no_tag + ", nor FERRY_ANY_TAG",
      "no buffer: 22 invalid buffer: the buffer is null but 4 bytes are to be moved",
      "nowhere to put the request: 2 invalid argument: the address of the request is null",
      "request that never was: 23 invalid request: the request is not active: completed and freed "
      "before?",
      AllOf(StartsWith("more than the heap: 12 out of memory: 1125899906842624 bytes asked "
                       "for, "),
            EndsWith(" free in the heap, in pieces; raise heap_bytes (FERRY_HEAP_BYTES)")),
      "more than the device: 12 out of memory: device 0 cannot allocate 1125899906842624 bytes: 0 "
      "of its 1073741824 bytes are in use",
      "device that is none: 2 invalid argument: there is no device 99; the host backend has "
      "devices 0 to 0",
      "nowhere to put the memory: 2 invalid argument: the kind is not one of FERRY_MEMORY_*, or "
      "the address for the result is null",
      "free of what was not allocated" + not_allocated,
      "free of a buffer in flight" + in_use,
      "free a second time" + not_allocated,
      "register twice" + overlap,
      "register a part again" + overlap,
      "register what Ferry allocated: 20 already exists: ferry_alloc returned this memory, so it "
      "needs no registration",
      "free what was registered: 22 invalid buffer: ferry_free was given memory of the "
      "application's own that is registered; call ferry_deregister",
      "deregister a buffer in flight" + in_use,
      "deregister twice: 19 not found: no registered range starts at this address",
      "register nothing: 2 invalid argument: the range is empty",
      "offload nothing: 2 invalid argument: the buffer is null or empty",
      "nowhere to put the handle: 2 invalid argument: the address of the handle is null",
      AllOf(StartsWith("offload more than the heap: 12 out of memory: 1099511627776 bytes "
                       "asked for, "),
            EndsWith(" free in the heap, in pieces; raise heap_bytes (FERRY_HEAP_BYTES)")),
      "offload a part again: 20 already exists: the range overlaps an offloaded send buffer; "
      "deregister that first (ferry_offload_deregister)",
      "synchronise beyond the end: 2 invalid argument: 5001 bytes from offset 5000 on are to be "
      "synchronised, but the buffer has 10000 bytes",
      "synchronise from beyond the end: 2 invalid argument: the rest from offset 10001 on are to "
      "be "
      "synchronised, but the buffer has 10000 bytes",
      "send what was not synchronised: 22 invalid buffer: byte 5000 of the offloaded send buffer "
      "was not synchronised since it was registered; call ferry_offload_sync first",
      "free what is offloaded: 22 invalid buffer: this memory is an offloaded send buffer, or "
      "holds "
      "one; call ferry_offload_deregister first",
      "synchronise in flight: 22 invalid buffer: a send that is not complete reads what was "
      "synchronised before; wait for it first, or synchronise other bytes",
      "deregister an offloaded buffer in flight: 22 invalid buffer: a request sends from the "
      "offloaded buffer: wait for it, or, if it is a persistent one, free it first",
      "synchronise what was deregistered" + no_handle,
      "deregister an offloaded buffer twice" + no_handle,
      "small truncated receive" + truncated,
      "large truncated receive" + truncated,
      "unmapped in flight" + not_there,
      "unmapped while registered" + not_there,
      "after the end: 3 Ferry is not initialised: ferry_finalize was called"};
}

class MistakesTest : public testing::TestWithParam<std::string> {};

TEST_P(MistakesTest, AreNamedAndCostNothingElse) {
  EXPECT_THAT(SortedLines(RunWell(
                  PrivateJob({"-n", "2", "--nodes", GetParam()}, {"tests/e2e/ranks/mistakes"}))),
              testing::UnorderedElementsAreArray(WhatIsTold()));
}

INSTANTIATE_TEST_SUITE_P(OnOneNodeAndTwo, MistakesTest, testing::Values("1", "2"));

// ---- Ranks that cannot be served

constexpr char kRefused[] = "tests/e2e/ranks/refused";

Words InJob(const std::string& run_directory) {
  return {"FERRY_RUN_DIRECTORY=" + run_directory, "FERRY_JOB_ID=job", "FERRY_RANK=0",
          "FERRY_SIZE=1"};
}

// The output of one rank whose environment the job's launcher made, and `change` changed.
std::string InitWith(const std::string& change) {
  return RunCommand(PrivateJob({}, With({change}, {kRefused}))).out;
}

TEST(RefusalTest, OutsideAJob) {
  EXPECT_THAT(RunCommand({kRefused}).out, HasSubstr("start it with ferryrun -n N PROGRAM"));
}

TEST(RefusalTest, WithoutADaemon) {
  EXPECT_THAT(RunCommand({kRefused}, InJob("/tmp/no-such-ferry")).out,
              AllOf(StartsWith("init: 5 "),
                    HasSubstr("no ferryd listens on /tmp/no-such-ferry/attach.sock. Start the "
                              "program with ferryrun, or start ferryd")));
}

TEST(RefusalTest, WithTheSocketOfADeadDaemon) {
  const TempDirectory directory;
  const auto daemon = StartDaemon({"daemon/ferryd"}, directory.path());
  daemon->Signal(SIGKILL);
  daemon->Wait();
  EXPECT_THAT(RunCommand({kRefused}, InJob(directory.path())).out,
              HasSubstr("/attach.sock (the socket is left over from one that died)"));
}

TEST(RefusalTest, WithAnotherSecretSizeOrRank) {
  EXPECT_THAT(InitWith("FERRY_JOB_SECRET=wrong"),
              AllOf(StartsWith("init: 7 "), HasSubstr("wrong secret for job "),
                    HasSubstr("check FERRY_JOB_SECRET")));
  EXPECT_THAT(InitWith("FERRY_JOB_ID=nojob"), HasSubstr("there is no job nojob on this daemon"));
  EXPECT_THAT(InitWith("FERRY_SIZE=2"), HasSubstr("has 1 rank, not 2: check FERRY_SIZE"));
}

TEST(RefusalTest, AForkOfARank) {
  EXPECT_THAT(RunWell(PrivateJob({}, {kRefused, "fork"})),
              AllOf(StartsWith("init: 0 \n"), HasSubstr("finalize: 0 \n"), HasSubstr("fork: 28 "),
                    HasSubstr("this process is a fork of one that had called ferry_init; "
                              "start ranks with ferryrun, or call exec first\n")));
}

}  // namespace
}  // namespace ferry::e2e
