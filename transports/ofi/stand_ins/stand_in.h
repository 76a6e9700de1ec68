// Libraries that stand in for others, which Debian's libfabric is linked with and needs only for
// cards that have not been sold for years: libpsm_infinipath.so.1 (TrueScale InfiniBand) and
// libpsm2.so.2 (Omni-Path). The constructor of each measures the processor's clock, for 0.1 s.
//
// Every call fails, so libfabric finds no such card. library.cc has the stand-ins loaded before
// libfabric, under the names of the others.
#pragma once

// Any error will do.
enum { kStandInError = 8 };

#define STAND_IN(name) \
  int name(void);      \
  int name(void) { return kStandInError; }

#define STAND_IN_TEXT(name)                                               \
  const char* name(int error);                                            \
  const char* name(int error) {                                           \
    (void)error;                                                          \
    return "Ferry opens this library only for its providers (psm, psm2)"; \
  }
