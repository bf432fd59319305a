/** Parameters of the kernel command line: what can be set by a reboot only. */
import type { Testbed } from "../../contracts/testbed.ts";

/** By boot profile, each with why it is set. */
const parameters = {
  none: [],
  publish: [
    ["intel_idle.max_cstate=1", "no deep sleep, also before the unit that asks for it runs"],
    ["processor.max_cstate=1", "the same where another driver puts CPUs to sleep"],
    ["skew_tick=1", "CPUs do not tick at the same instant"],
    ["tsc=reliable", "no clock checks in the midst of a run"],
    ["rcupdate.rcu_normal_after_boot=1", "no interrupts between CPUs to hasten grace periods"],
  ],
} as const;

/** The parameters that every host of a testbed must have been started with. */
export function bootParametersOf(testbed: Testbed): readonly string[] {
  return parameters[testbed.hardware?.bootProfile ?? "none"].map(([parameter]) => parameter);
}
