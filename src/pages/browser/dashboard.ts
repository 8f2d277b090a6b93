import { keepLive } from './live.ts';

keepLive();
