/** A few random histories of each kind; `simulation.deep.test.ts` plays more. */
import { testSuite } from './suite-tests.ts';

testSuite('a few of each kind');
