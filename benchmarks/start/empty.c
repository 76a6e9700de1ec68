/* A rank that does nothing: what is left of a job's time is its launcher's. */
int main(void) { return 0; }
