/** Reads the claims documents of a directory. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { type Claims, claimsSchema } from "../contracts/claims.ts";
import { documentBytesMax, parseDocument } from "../contracts/document.ts";
import { Failure } from "../contracts/failure.ts";
import { readBoundedText } from "./bounded-text.ts";

/**
 * All documents of a directory, by name of their files.
 *
 * @throws Failure `document` if one is bad, two have the same source, or there is none
 */
export async function readClaims(directory: string): Promise<readonly Claims[]> {
  const files = (await readdir(directory).catch((): string[] => []))
    .filter((name) => name.endsWith(".yaml"))
    .sort();
  if (files.length === 0) {
    throw new Failure("document", `claims: no document in ${directory}, at least one wanted`);
  }
  const documents: Claims[] = [];
  for (const file of files) {
    const path = join(directory, file);
    const text = await readBoundedText(path, path, documentBytesMax);
    const document = parseDocument(claimsSchema, text, path);
    const { id } = document.source;
    if (documents.some(({ source }) => source.id === id)) {
      throw new Failure(
        "document",
        `${path}: source.id: ${id} is already that of another document`,
      );
    }
    documents.push(document);
  }
  return documents;
}
