/** Requests to a server that may be killed at any moment. */

/** Whether the server no longer answers; anything else that fails is a failure of the test. */
export async function gone(act: () => Promise<void>): Promise<boolean> {
  try {
    await act();
    return false;
  } catch (error) {
    // What fetch throws when there is no answer, or only a part of one.
    if (error instanceof TypeError) return true;
    throw error;
  }
}
