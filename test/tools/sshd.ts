/** An OpenSSH server on the loopback with keys of its own, for tests. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { access, mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer, connect } from "node:net";
import { userInfo } from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { $ } from "zx";

const binary = "/usr/sbin/sshd";
const startupMs = 10_000;

export type SshServer = {
  readonly port: number;
  readonly user: string;
  /** File of the private key that the server lets in. */
  readonly keyFile: string;
  /** Public host key, one line. */
  readonly hostKey: string;
  readonly stop: () => Promise<void>;
};

/** Starts a server whose files lie in `directory`. */
export async function startSshServer(directory: string): Promise<SshServer> {
  await access(binary).catch((cause: unknown) => {
    const remedy = "node --import tsx tools/install.ts --with-tests";
    throw new Error(`${binary} is missing: install it with \`${remedy}\``, { cause });
  });
  if (process.getuid?.() === 0) await mkdir("/run/sshd", { recursive: true });
  const hostFile = path.join(directory, "host");
  const keyFile = path.join(directory, "client");
  for (const file of [hostFile, keyFile]) {
    await $({ quiet: true })`ssh-keygen -q -t ed25519 -N ${""} -C test -f ${file}`;
  }
  const port = await freePort();
  const config = path.join(directory, "sshd_config");
  await writeFile(config, configuration(port, hostFile, `${keyFile}.pub`));
  const server = spawn(binary, ["-D", "-f", config], { stdio: "ignore" });
  await untilListening(port, server);
  return {
    port,
    user: userInfo().username,
    keyFile,
    hostKey: (await readFile(`${hostFile}.pub`, "utf8")).trim(),
    stop: async () => {
      if (server.exitCode !== null) return;
      const exited = once(server, "exit");
      server.kill();
      await exited;
    },
  };
}

const configuration = (port: number, hostFile: string, authorized: string) => `Port ${port}
ListenAddress 127.0.0.1
HostKey ${hostFile}
AuthorizedKeysFile ${authorized}
PidFile none
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
Subsystem sftp internal-sftp
`;

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}

async function untilListening(port: number, server: ChildProcess): Promise<void> {
  const deadline = Date.now() + startupMs;
  while (Date.now() < deadline) {
    if (server.exitCode !== null) throw new Error(`sshd ended with ${server.exitCode}`);
    if (await isListening(port)) return;
    await pause(20);
  }
  throw new Error(`sshd does not listen on port ${port} after ${startupMs} ms`);
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    const answer = (isOpen: boolean) => {
      socket.destroy();
      resolve(isOpen);
    };
    socket.once("connect", () => {
      answer(true);
    });
    socket.once("error", () => {
      answer(false);
    });
  });
}
